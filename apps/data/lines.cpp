#include "apps/data/lines.h"

#include <algorithm>

#include "apps/data/masking.h"
#include "apps/data/text_file.h"
#include "core/file.h"
#include "core/random.h"

namespace norma {
namespace {

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

// The characters of all lines.
Tokenizer tokenizer_of(const std::vector<std::string_view>& lines, const std::string& path) {
  require(!lines.empty(), "lines: {} has no line that is not empty", path);
  std::string all;
  for (const std::string_view line : lines) all += line;
  return Tokenizer::characters(all, path);
}

class Lines final : public DataSet {
 public:
  Lines(const LinesConfig& config, const Tokenizer& tokenizer,
        std::vector<std::vector<std::int64_t>> lines, std::int64_t length, const DataContext& run)
      : DataSet(LinesConfig::type,
                {.input = {length},
                 .target = {length},
                 .vocab = tokenizer.vocab() + 1,
                 .classes = tokenizer.vocab() + 1,
                 .edge = run.form == SequenceForm::decoder ? tokenizer.vocab() : -1},
                config, run.seed, false),
        tokenizer_(tokenizer),
        lines_(std::move(lines)),
        masked_(run.form == SequenceForm::encoder),
        seed_(run.seed) {
    tokenizer_.keep(mutable_record());
    auto n = static_cast<std::int64_t>(lines_.size());
    if (config.limit) n = std::min(n, *config.limit);
    split_ = split_samples(LinesConfig::type, n, config.validation_share(false));
  }

  [[nodiscard]] std::int64_t size(Part part) const override { return split_.size(part); }
  [[nodiscard]] const Tokenizer* tokenizer() const override { return &tokenizer_; }
  void set_hash(std::string hash) { mutable_record().hash = std::move(hash); }

 protected:
  [[nodiscard]] Batch gather(Part part, std::span<const std::int64_t> samples,
                             std::int64_t epoch) const override;

 private:
  Tokenizer tokenizer_;
  std::vector<std::vector<std::int64_t>> lines_;
  bool masked_;
  std::uint64_t seed_;
  Split split_;
};

Batch Lines::gather(Part part, std::span<const std::int64_t> samples, std::int64_t epoch) const {
  const auto n = static_cast<std::int64_t>(samples.size());
  const std::int64_t length = spec().input[0];
  const std::int64_t filler = tokenizer_.vocab();
  Batch batch{.inputs = Tensor::empty({n, length}, DType::i64),
              .targets = Tensor::empty({n, length}, DType::i64),
              .mask = Tensor::empty({n, length}, DType::u8)};
  std::fill_n(batch.inputs.mutable_data<std::int64_t>(), n * length, filler);
  std::fill_n(batch.targets.mutable_data<std::int64_t>(), n * length, kIgnored);
  std::fill_n(batch.mask.mutable_data<std::uint8_t>(), n * length, std::uint8_t{0});
  for (std::int64_t s = 0; s < n; ++s) {
    const std::int64_t place = split_.place(part, samples[static_cast<std::size_t>(s)]);
    const std::vector<std::int64_t>& line = lines_[static_cast<std::size_t>(place)];
    const auto used = static_cast<std::int64_t>(line.size());
    std::int64_t* inputs = batch.inputs.mutable_data<std::int64_t>() + s * length;
    std::int64_t* targets = batch.targets.mutable_data<std::int64_t>() + s * length;
    if (masked_) {
      std::copy(line.begin(), line.end(), inputs);
      RandomStream stream(masking_key(part, seed_, epoch, place));
      mask_tokens(stream, {inputs, line.size()}, {targets, line.size()}, filler, filler);
    } else {
      std::copy(line.begin(), line.end(), inputs + 1);
      std::copy(line.begin(), line.end(), targets);
      targets[used] = filler;
    }
    std::fill_n(batch.mask.mutable_data<std::uint8_t>() + s * length, masked_ ? used : used + 1,
                std::uint8_t{1});
  }
  return batch;
}

}  // namespace

config::Fields LinesConfig::fields() {
  using namespace config;
  return Fields{field("path", &LinesConfig::path, "The file.", required() & not_empty())} +
         sample_fields();
}

std::unique_ptr<DataSet> LinesConfig::make(const DataContext& run) const {
  require(run.form != SequenceForm::encoder_decoder, "lines: {}", kNoSource);
  const std::string text = read_text(path);
  const std::vector<std::string_view> lines = split_lines(text);
  const Tokenizer tokenizer = tokenizer_of(lines, path);
  std::vector<std::vector<std::int64_t>> ids;
  std::size_t longest = 0;
  for (const std::string_view line : lines) {
    ids.push_back(tokenizer.encode(line, path));
    longest = std::max(longest, ids.back().size());
  }
  const auto length =
      static_cast<std::int64_t>(longest) + (run.form == SequenceForm::decoder ? 1 : 0);
  auto data = std::make_unique<Lines>(*this, tokenizer, std::move(ids), length, run);
  data->set_hash(checksum(text));
  return data;
}

}  // namespace norma
