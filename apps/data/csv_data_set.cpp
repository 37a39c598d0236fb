#include "apps/data/csv_data_set.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "apps/data/text_file.h"

namespace norma {
namespace {

std::size_t target_column(const CsvConfig& config, const Table& table) {
  const auto columns = static_cast<std::int64_t>(table.names.size());
  if (!config.target) return table.names.size() - 1;
  if (const auto* number = std::get_if<std::int64_t>(&*config.target)) {
    require(*number >= 1 && *number <= columns, "data.target: {} has columns 1 to {}; got {}",
            config.path, columns, *number);
    return static_cast<std::size_t>(*number - 1);
  }
  const std::string& name = std::get<std::string>(*config.target);
  const auto found = std::find(table.names.begin(), table.names.end(), name);
  if (found != table.names.end()) return static_cast<std::size_t>(found - table.names.begin());
  require(table.has_header,
          "data.target: {} has no line of names, so that there is no \"{}\"; give the column's "
          "number, or header: true",
          config.path, name);
  const std::vector<std::string_view> names(table.names.begin(), table.names.end());
  throw Error::format("data.target: {} has no column \"{}\"{}", config.path, name,
                      config::name_hint(name, names));
}

// The distinct values: by number if all are whole numbers, else by letters.
std::vector<std::string> class_names(std::vector<std::string> values) {
  const auto number = [](const std::string& text) {
    double value = 0;
    const bool whole = read_number(text, value) && value == std::floor(value);
    return whole ? std::optional(value) : std::nullopt;
  };
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  if (std::all_of(values.begin(), values.end(), number)) {
    std::stable_sort(values.begin(), values.end(),
                     [&](const auto& a, const auto& b) { return *number(a) < *number(b); });
  }
  return values;
}

// True iff the classes of so many rows are numbers that are hardly meant as classes: very many, or
// most rows have another one, and some have fractions.
bool look_measured(const std::vector<std::string>& classes, std::size_t rows) {
  bool fractions = false;
  for (const std::string& name : classes) {
    double value = 0;
    if (!read_number(name, value)) return false;
    fractions = fractions || value != std::floor(value);
  }
  return classes.size() > 1000 || (fractions && 2 * classes.size() > rows);
}

}  // namespace

config::Fields CsvConfig::fields() {
  using namespace config;
  return Fields{
             field("path", &CsvConfig::path, "The file.", required() & not_empty()),
             field("target", &CsvConfig::target,
                   "The column that is predicted: its name, or its number from 1; null: the last."),
             field("task", &CsvConfig::task, "Whether the target is a class or a number."),
             field("header", &CsvConfig::header,
                   "Whether the first line holds names; null: it does if none is a number.")} +
         array_fields();
}

Table parse_table(std::string_view text, const std::string& source, std::optional<bool> header) {
  Table table;
  table.rows = parse_csv(text, source);
  const std::vector<std::string>& first = table.rows[0].fields;
  table.has_header = header.value_or(std::none_of(first.begin(), first.end(), [](const auto& f) {
    double value = 0;
    return read_number(f, value);
  }));
  if (table.has_header) {
    table.names = first;
    table.rows.erase(table.rows.begin());
    std::vector<std::string> sorted = table.names;
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    require(twice == sorted.end(), "{}: line 1: the column \"{}\" stands twice", source,
            twice == sorted.end() ? "" : *twice);
    require(!table.rows.empty(), "{}: there are no rows below the names", source);
  } else {
    for (std::size_t c = 1; c <= first.size(); ++c) table.names.push_back(std::to_string(c));
  }
  return table;
}

namespace {

// `goal`: the column is the target, which may be a class, and not a feature.
double read_at(const Table& table, std::size_t row, std::size_t column, const std::string& source,
               bool goal) {
  const std::string& text = table.rows[row].fields[column];
  const auto where = [&] {
    return fmt::format("{}: line {}, column {}{}", source, table.rows[row].line, column + 1,
                       table.has_header ? fmt::format(" (\"{}\")", table.names[column]) : "");
  };
  double value = 0;
  require(!text.empty(), "{}: the value is missing; fill it in, or leave the line out", where());
  require(
      read_number(text, value) && std::isfinite(value), "{}: {}; got \"{}\"; {}", where(),
      goal ? "the target must be a number" : "expected a number", text,
      row == 0 && !table.has_header ? "if the line holds names, give header: true"
      : goal
          ? "to predict a class, give task: classification"
          : "words are no features: leave the column out, or write one of 0 and 1 for each word");
  require(std::abs(value) <= std::numeric_limits<float>::max(),
          "{}: {} is beyond the range of f32, {:.4g}", where(), text,
          std::numeric_limits<float>::max());
  return value;
}

}  // namespace

double number_at(const Table& table, std::size_t row, std::size_t column,
                 const std::string& source) {
  return read_at(table, row, column, source, false);
}

std::unique_ptr<DataSet> CsvConfig::make(const DataContext& run) const {
  const std::string text = read_text(path);
  const Table table = parse_table(text, path, header);
  const std::size_t goal = target_column(*this, table);
  const auto n = static_cast<std::int64_t>(table.rows.size());
  const auto features = static_cast<std::int64_t>(table.names.size()) - 1;
  require(features > 0, "{}: expected features beside the target; got one column{}", path,
          table.names[0].find_first_of(";\t") == std::string::npos
              ? ""
              : fmt::format(", \"{}\"; separate the columns by commas", table.names[0]));

  LabelledArrays arrays;
  arrays.inputs = Tensor::empty({n, features}, DType::f32);
  float* x = arrays.inputs.mutable_data<float>();
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    for (std::size_t c = 0; c < table.names.size(); ++c) {
      if (c != goal) *x++ = static_cast<float>(number_at(table, r, c, path));
    }
  }
  if (task == CsvTask::regression) {
    arrays.regression = true;
    arrays.labels = Tensor::empty({n}, DType::f32);
    float* y = arrays.labels.mutable_data<float>();
    for (std::size_t r = 0; r < table.rows.size(); ++r) {
      y[r] = static_cast<float>(read_at(table, r, goal, path, true));
    }
  } else {
    std::vector<std::string> values;
    for (const CsvRow& row : table.rows) {
      require(!row.fields[goal].empty(), "{}: line {}, column {}: the class is missing", path,
              row.line, goal + 1);
      values.push_back(row.fields[goal]);
    }
    arrays.class_names = class_names(values);
    std::unordered_map<std::string_view, std::int64_t> ids;
    for (const std::string& name : arrays.class_names) {
      ids.emplace(name, static_cast<std::int64_t>(ids.size()));
    }
    arrays.labels = Tensor::empty({n}, DType::i64);
    std::int64_t* y = arrays.labels.mutable_data<std::int64_t>();
    for (const std::string& value : values) *y++ = ids.at(value);
    require(
        !look_measured(arrays.class_names, values.size()),
        "{}: the target \"{}\" has {} different numbers in {} rows; give task: regression for a "
        "number",
        path, table.names[goal], arrays.class_names.size(), values.size());
  }
  if (table.has_header) {
    arrays.columns = table.names;
    arrays.columns.erase(arrays.columns.begin() + static_cast<std::ptrdiff_t>(goal));
    arrays.target_column = table.names[goal];
  }
  return std::make_unique<LabelledArraysDataSet>(type, std::move(arrays), *this, run.seed);
}

}  // namespace norma
