// Embedding: a row of a table for each id.
#pragma once

#include "core/config/config.h"
#include "layers/layer.h"

namespace norma {

struct EmbeddingConfig {
  static constexpr const char* type = "embedding";
  static constexpr const char* doc = "A learned row for each id.";
  static constexpr const char* source = "torch.nn.Embedding";
  std::int64_t out = 0;
  std::optional<std::int64_t> vocab;
  static config::Fields fields();
  [[nodiscard]] LayerPtr build(const Scope& scope, const Signature& in) const;
};

// Shapes: ids (...) i64 in 0..vocab-1, weight (vocab, out), result (..., out).
class Embedding final : public Layer {
 public:
  Embedding(const Scope& scope, const Shape& in, std::int64_t vocab, std::int64_t out);
  [[nodiscard]] Tensor forward(const Tensor& ids, const Forward& pass) override;
  [[nodiscard]] const Tensor& weight() const { return weight_; }

 private:
  Tensor weight_;
};

}  // namespace norma
