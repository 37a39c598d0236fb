// RelativeBias: T5's position code, one learned number a bucket of distances and a head.
#pragma once

#include "layers/module.h"
#include "layers/position.h"

namespace norma {

// bias[h, i, j] = weight[bucket(j - i), h], to be added to the logits of attention. One table
// serves all layers of a stack: the stack computes the bias once a pass and hands it on in
// Forward::attention_bias. Cross-attention has none.
// Shapes: weight (buckets, heads), result (heads, T, S).
// Source: Raffel et al. 2020, arXiv 1910.10683; the buckets: relative_bucket().
class RelativeBias final : public Module {
 public:
  RelativeBias(const RelativePositionConfig& config, std::int64_t heads, Direction direction,
               const Scope& scope);
  // Of the last `queries` of `keys` positions.
  [[nodiscard]] Tensor forward(std::int64_t queries, std::int64_t keys);

 private:
  RelativePositionConfig config_;
  Direction direction_;
  Tensor weight_;
  Tensor buckets_;  // (T, S) ids of the last call
};

}  // namespace norma
