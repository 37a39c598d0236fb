#include "apps/data/text.h"

#include <algorithm>

#include "apps/data/masking.h"
#include "apps/data/text_file.h"
#include "core/config/sizes.h"
#include "core/file.h"

namespace norma {

config::Fields TextConfig::fields() {
  using namespace config;
  return Fields{
             field("path", &TextConfig::path, "The file.", required() & not_empty()),
             field(
                 "tokenizer", &TextConfig::tokenizer,
                 "What one token is: a character of the text, a byte, or a frequent run of bytes."),
             field("vocab", &TextConfig::vocab,
                   "Tokens of bpe, the 256 bytes included; null: 512. A text with few "
                   "repetitions gives fewer.",
                   between(256, 1e6)),
             field("context", &TextConfig::context, "Tokens of a window.", a_size(),
                   also_called("block_size seq_len max_seq_len"))} +
         sample_fields();
}

void TextConfig::check(config::Problems& problems, const std::string& path_of) const {
  if (vocab && tokenizer != TokenizerKind::bpe) {
    problems.add(config::join(path_of, "vocab"), "only the tokenizer \"bpe\" has it");
  }
}

std::unique_ptr<DataSet> TextConfig::make(const DataContext& run) const {
  const std::string text = read_text(path);
  Tokenizer t = Tokenizer::bytes();
  if (tokenizer == TokenizerKind::character) t = Tokenizer::characters(text, path);
  if (tokenizer == TokenizerKind::bpe) {
    t = Tokenizer::byte_pairs(Bpe::train(text, vocab.value_or(512)));
  }
  std::vector<std::int64_t> ids = t.encode(text, path);
  auto data = std::make_unique<TextDataSet>(*this, std::move(t), std::move(ids), run);
  data->set_hash(checksum(text));
  return data;
}

TextDataSet::TextDataSet(const TextConfig& config, Tokenizer tokenizer,
                         std::vector<std::int64_t> ids, const DataContext& run)
    : DataSet(TextConfig::type,
              {.input = {config.context},
               .target = {config.context},
               .vocab = tokenizer.vocab() + (run.form == SequenceForm::encoder ? 1 : 0),
               .classes = tokenizer.vocab()},
              config, run.seed, config.shuffle),
      tokenizer_(std::move(tokenizer)),
      ids_(std::move(ids)),
      context_(config.context),
      drawn_(config.shuffle),
      masked_(run.form == SequenceForm::encoder),
      seed_(run.seed),
      key_(random_key(run.seed, "data/windows")) {
  require(run.form != SequenceForm::encoder_decoder, "text: {}", kNoSource);
  tokenizer_.keep(mutable_record());
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

Batch TextDataSet::gather(Part part, std::span<const std::int64_t> samples,
                          std::int64_t epoch) const {
  const auto n = static_cast<std::int64_t>(samples.size());
  Batch batch{Tensor::empty({n, context_}, DType::i64), Tensor::empty({n, context_}, DType::i64)};
  std::int64_t* inputs = batch.inputs.mutable_data<std::int64_t>();
  std::int64_t* targets = batch.targets.mutable_data<std::int64_t>();
  const auto row = static_cast<std::size_t>(context_);
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
    if (masked_) {
      RandomStream stream(masking_key(part, seed_, epoch, sample));
      mask_tokens(stream, {inputs + s * context_, row}, {targets + s * context_, row},
                  tokenizer_.vocab(), tokenizer_.vocab());
    } else {
      std::copy_n(ids + start + 1, context_, targets + s * context_);
    }
  }
  return batch;
}

}  // namespace norma
