// Block: attention and feed-forward, each in a residual branch laid out by the placement.
#pragma once

#include "layers/attention.h"
#include "layers/dropout.h"
#include "layers/feed_forward.h"
#include "layers/placements.h"

namespace norma {

struct BlockOptions {
  AttentionConfig attention;
  FeedForward::Options feed_forward;
  NormConfig norm;
  PlacementConfig placement;
  Depth depth;
  double dropout = 0;
};

// x <- N_post(alpha x + beta dropout(N_out(F(N_in(x))))) with F = attention, then feed-forward; see
// layers/placements.h.
// Shapes: (B, T, C) to (B, T, C).
class Block final : public Layer {
 public:
  Block(const BlockOptions& options, const Scope& scope, const Signature& in);
  [[nodiscard]] Tensor forward(const Tensor& x, const Forward& pass) override;

 private:
  // The norms, the factors and the dropout around one F.
  struct Branch {
    LayerPtr norm_in, norm_out, norm_post;
    Tensor beta;  // learned, or empty
    std::unique_ptr<Dropout> dropout;
  };
  Branch make_branch(const std::string& name, const BlockOptions& options, const Scope& scope,
                     const Signature& in);
  [[nodiscard]] Tensor run(const Branch& branch, Layer& f, const Tensor& x,
                           const Forward& pass) const;

  PlacementRow row_;
  Branch attention_branch_, ffn_branch_;
  Attention attention_;
  FeedForward ffn_;
};

}  // namespace norma
