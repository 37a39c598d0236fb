// BatchNorm: statistics of a channel over the whole batch, and running ones for evaluation.
#pragma once

#include "layers/channel_norm.h"

namespace norma {

struct BatchNormConfig : ChannelNormOptions {
  static constexpr const char* type = "batch_norm";
  static constexpr const char* doc = "Over the batch and space, for each channel.";
  static constexpr const char* source =
      "Ioffe & Szegedy 2015, arXiv 1502.03167; torch.nn.BatchNorm";
  bool masked = true;
  static config::Fields fields();
  [[nodiscard]] LayerPtr build(const Scope& scope, const Signature& in) const;
};

// y = weight * (x - mean) / sqrt(var + eps) + bias. In training mean and biased var are the
// batch's, and running = (1 - momentum) running + momentum batch, the running variance unbiased
// (momentum null: the plain average of all batches). In evaluation they are the running ones, or
// the batch's where `track` is false. Shapes: x (N, C), (N, C, L) or (N, C, H, W). Inside a
// transformer x is (B, T, C), and the statistics are over B and T. With a mask (B, T) of sequences
// (of (N, C, L): (N, L)) the padding has no part in them, unless `masked` is false. Throws: in
// training, over one value a channel.
class BatchNorm final : public ChannelNorm {
 public:
  BatchNorm(const BatchNormConfig& config, const Scope& scope, const Signature& in)
      : ChannelNorm("batch_norm", config, scope, in), masked_(config.masked) {}
  [[nodiscard]] Tensor forward(const Tensor& x, const Forward& pass) override;

 private:
  bool masked_;
};

}  // namespace norma
