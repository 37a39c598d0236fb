#include "apps/data/text.h"

#include <filesystem>

#include <algorithm>

#include "core/file.h"

namespace norma {

config::Fields TextConfig::fields() {
  using namespace config;
  return Fields{field("path", &TextConfig::path, "The file.", required() & not_empty()),
                field("tokenizer", &TextConfig::tokenizer,
                      "What one token is: a character of the text, or a byte."),
                field("context", &TextConfig::context, "Tokens of a window.", at_least(1))} +
         sample_fields();
}

namespace {

// A device or a pipe would be read without end.
std::string read_text(const std::string& path) {
  require(std::filesystem::exists(path),
          "data.path: there is no file {}; give the text with --set data.path=FILE", path);
  require(std::filesystem::is_regular_file(path), "data.path: {} is no file of text", path);
  return read_file(path);
}

}  // namespace

std::unique_ptr<DataSet> TextConfig::make(const DataContext& run) const {
  const std::string text = read_text(path);
  Tokenizer t =
      tokenizer == TokenizerKind::byte ? Tokenizer::bytes() : Tokenizer::characters(text, path);
  std::vector<std::int64_t> ids = t.encode(text, path);
  return std::make_unique<TextDataSet>(*this, std::move(t), std::move(ids), run.seed);
}

TextDataSet::TextDataSet(const TextConfig& config, Tokenizer tokenizer,
                         std::vector<std::int64_t> ids, std::uint64_t seed)
    : DataSet(TextConfig::type,
              {.input = {config.context},
               .target = {config.context},
               .vocab = tokenizer.vocab(),
               .classes = tokenizer.vocab()},
              config, seed, config.shuffle),
      tokenizer_(std::move(tokenizer)),
      ids_(std::move(ids)),
      context_(config.context),
      drawn_(config.shuffle),
      key_(random_key(seed, "data/windows")) {
  const auto n = static_cast<std::int64_t>(ids_.size());
  const double share = config.validation_share(false);
  train_tokens_ = static_cast<std::int64_t>(static_cast<double>(n) * (1 - share));
  validation_tokens_ = n - train_tokens_;
  if (share == 0) validation_tokens_ = 0;
  if (config.limit && (train_tokens_ - 1) / context_ > *config.limit) {
    train_tokens_ = *config.limit * context_ + 1;
  }
  const auto check = [&](Part part, std::int64_t tokens) {
    require(tokens > context_,
            "text: expected at least context + 1 = {} tokens in the {} part of {}; got {}; use a "
            "longer text, a smaller context{}",
            context_ + 1, name_of(part), config.path, tokens,
            part == Part::validation ? ", or a larger validation share (0 for none)" : "");
  };
  check(Part::train, train_tokens_);
  if (share > 0) check(Part::validation, validation_tokens_);
}

std::int64_t TextDataSet::size(Part part) const {
  const std::int64_t tokens = part == Part::train        ? train_tokens_
                              : part == Part::validation ? validation_tokens_
                                                         : 0;
  return tokens == 0 ? 0 : (tokens - 1) / context_;
}

Batch TextDataSet::gather(Part part, std::span<const std::int64_t> samples) const {
  const auto n = static_cast<std::int64_t>(samples.size());
  Batch batch{Tensor::empty({n, context_}, DType::i64), Tensor::empty({n, context_}, DType::i64)};
  std::int64_t* inputs = batch.inputs.mutable_data<std::int64_t>();
  std::int64_t* targets = batch.targets.mutable_data<std::int64_t>();
  const std::int64_t* ids =
      ids_.data() +
      (part == Part::train ? 0 : static_cast<std::int64_t>(ids_.size()) - validation_tokens_);
  for (std::int64_t s = 0; s < n; ++s) {
    const std::int64_t sample = samples[static_cast<std::size_t>(s)];
    const bool drawn = drawn_ && part == Part::train;
    const std::int64_t start =
        drawn
            ? RandomStream(key_, static_cast<std::uint64_t>(sample)).below(train_tokens_ - context_)
            : sample * context_;
    std::copy_n(ids + start, context_, inputs + s * context_);
    std::copy_n(ids + start + 1, context_, targets + s * context_);
  }
  return batch;
}

}  // namespace norma
