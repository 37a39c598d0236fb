#include "apps/training/prediction.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "apps/data/csv_data_set.h"
#include "apps/data/idx.h"
#include "apps/data/scaling.h"
#include "apps/data/text_file.h"
#include "core/autograd.h"
#include "core/file.h"
#include "core/ops/movement.h"

namespace norma {
namespace {

constexpr std::int64_t kBatch = 256;

// IDX begins with two zeros, gzip with 1f 8b; text with neither.
bool is_idx(const std::string& path) {
  const InputFile file(path);
  require(file.size() >= 2, "{}: expected a CSV or IDX file; got {} bytes", path, file.size());
  unsigned char first[2];
  file.read_at(0, first, 2);
  return (first[0] == 0 && first[1] == 0) || (first[0] == 0x1f && first[1] == 0x8b);
}

std::string joined(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

// Where the features stand in a table.
std::vector<std::size_t> feature_columns(const DataRecord& record, const Table& table,
                                         const std::string& path) {
  const auto features = static_cast<std::size_t>(record.input[0]);
  std::vector<std::size_t> columns(features);
  if (!table.has_header || record.columns.empty()) {
    require(table.names.size() == features,
            "{}: expected {} columns, the features alone, as in training; got {}", path, features,
            table.names.size());
    std::iota(columns.begin(), columns.end(), 0);
    return columns;
  }
  std::vector<std::string> missing, unknown;
  for (std::size_t f = 0; f < features; ++f) {
    const auto found = std::find(table.names.begin(), table.names.end(), record.columns[f]);
    columns[f] = static_cast<std::size_t>(found - table.names.begin());
    if (found == table.names.end()) missing.push_back(record.columns[f]);
  }
  for (const std::string& name : table.names) {
    const bool known = name == record.target_column ||
                       std::count(record.columns.begin(), record.columns.end(), name) > 0;
    if (!known) unknown.push_back(name);
  }
  require(missing.empty() && unknown.empty(),
          "{}: expected the columns of the training: {}; missing here: {}; unknown: {}", path,
          joined(record.columns), missing.empty() ? "none" : joined(missing),
          unknown.empty() ? "none" : joined(unknown));
  return columns;
}

Tensor read_table(const DataRecord& record, const std::string& path) {
  const Table table = parse_table(read_text(path), path, std::nullopt);
  const std::vector<std::size_t> columns = feature_columns(record, table, path);
  Tensor inputs = Tensor::empty({static_cast<std::int64_t>(table.rows.size()), record.input[0]});
  float* x = inputs.mutable_data<float>();
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    for (const std::size_t column : columns) {
      *x++ = static_cast<float>(number_at(table, row, column, path));
    }
  }
  return inputs;
}

// softmax(x)[best].
double probability_of(const double* x, std::int64_t classes, std::int64_t best) {
  double sum = 0;
  for (std::int64_t c = 0; c < classes; ++c) sum += std::exp(x[c] - x[best]);
  return 1 / sum;
}

// An output may belong to no class of the data; see output_warning().
std::string name_of_class(const DataRecord& record, std::int64_t output) {
  const auto at = static_cast<std::size_t>(output);
  if (at < record.class_names.size()) return record.class_names[at];
  if (output >= record.classes) return fmt::format("no class (output {})", output);
  return std::to_string(output);
}

}  // namespace

Tensor read_inputs(const DataRecord& record, const std::string& path) {
  require(
      !record.mean.empty(),
      "predict: the run's data are \"{}\"; expected a run on arrays of numbers, like csv, idx or "
      "fashion_mnist; for text and sequences there is `norma generate RUN PROMPT`",
      record.type);
  const Shape sample = spec_of(record).input;
  const bool table = !is_idx(path);
  require(!table || sample.rank() == 1,
          "{}: the run's samples have shape {}; give them as an IDX file", path,
          sample.to_string());
  const Tensor raw = table ? read_table(record, path) : read_idx(path);
  check_numbers(path, raw);
  const std::int64_t n = raw.size(0);
  require(n > 0 && raw.numel() == n * sample.numel() && (raw.rank() == 2 || sample.rank() > 1) &&
              raw.size(-1) == sample[-1],
          "{}: expected samples of shape {}, as in training; got an array of shape {}", path,
          sample.to_string(), raw.shape().to_string());
  Shape shape{n};
  for (const std::int64_t axis : sample) shape.push_back(axis);
  Tensor inputs = Tensor::empty(shape);
  std::vector<std::int64_t> places(static_cast<std::size_t>(n));
  std::iota(places.begin(), places.end(), 0);
  write_samples(raw, places, {record.mean, record.deviation}, inputs.mutable_data<float>());
  return inputs;
}

std::vector<Prediction> predict(FinishedRun& run, const Tensor& inputs) {
  const NoGrad off;
  run.model().eval();
  const DataRecord& record = run.record();
  std::vector<Prediction> all;
  for (std::int64_t begin = 0; begin < inputs.size(0); begin += kBatch) {
    const std::int64_t end = std::min(inputs.size(0), begin + kBatch);
    const Tensor outputs = run.model()(slice(inputs, 0, begin, end));
    const std::vector<double> values = outputs.to_vector();
    const std::int64_t width = outputs.size(-1);
    for (std::int64_t row = 0; row < end - begin; ++row) {
      const double* x = values.data() + row * width;
      if (record.classes == 0) {
        all.push_back({fmt::format("{:.9g}", *x), 0});
        continue;
      }
      const std::int64_t best = std::max_element(x, x + width) - x;
      all.push_back({name_of_class(record, best), probability_of(x, width, best)});
    }
  }
  return all;
}

}  // namespace norma
