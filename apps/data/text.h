// A text file: the next token for a decoder, masked ones for an encoder.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "apps/data/data_set.h"
#include "apps/data/tokenizer.h"
#include "core/random.h"

namespace norma {

enum class TokenizerKind { character, byte, bpe };
constexpr auto config_names(TokenizerKind) {
  return std::to_array<std::string_view>({"char", "byte", "bpe"});
}

struct TextConfig : SampleOptions {
  static constexpr const char* type = "text";
  static constexpr const char* doc = "A text file; the target of a token is the one that follows.";
  static constexpr const char* source = "as in nanoGPT's shakespeare_char";

  std::string path;
  TokenizerKind tokenizer = TokenizerKind::character;
  std::optional<std::int64_t> vocab;
  std::int64_t context = 64;

  [[nodiscard]] static config::Fields fields();
  void check(config::Problems& problems, const std::string& path_of) const;
  [[nodiscard]] std::unique_ptr<DataSet> make(const DataContext& run) const;
};

// Windows of T tokens of a part of N: inputs ids[s .. s+T-1], targets ids[s+1 .. s+T].
//
// The last `validation` share of the text is the validation part; its windows start at 0, T, 2 T,
// ... and the tokens behind the last whole window are left out. Training windows start anywhere: s
// is uniform over 0..N-T-1. Without `shuffle` they are as those of validation. An encoder gets
// masked tokens (masking.h), the blank being an id behind those of the tokenizer; which ones is a
// function of (seed, epoch, sample), and in validation of the sample alone.
class TextDataSet final : public DataSet {
 public:
  // Throws Error, naming part, N and T, if a part has fewer than T+1 tokens.
  TextDataSet(const TextConfig& config, Tokenizer tokenizer, std::vector<std::int64_t> ids,
              const DataContext& run);

  [[nodiscard]] std::int64_t size(Part part) const override;
  [[nodiscard]] const Tokenizer* tokenizer() const override { return &tokenizer_; }
  // The training part, for statistics of it.
  [[nodiscard]] std::span<const std::int64_t> training_ids() const {
    return std::span(ids_).first(static_cast<std::size_t>(train_tokens_));
  }
  // True iff some tokens are masked, and predicted: the model reads in both directions.
  [[nodiscard]] bool masked() const { return masked_; }
  void set_hash(std::string hash) { mutable_record().hash = std::move(hash); }

 protected:
  [[nodiscard]] Batch gather(Part part, std::span<const std::int64_t> samples,
                             std::int64_t epoch) const override;

 private:
  Tokenizer tokenizer_;
  std::vector<std::int64_t> ids_;
  std::int64_t context_;
  std::int64_t train_tokens_ = 0, validation_tokens_ = 0;  // the first, and the last, of ids_
  bool drawn_, masked_;
  std::uint64_t seed_;
  RandomKey key_;
};

}  // namespace norma
