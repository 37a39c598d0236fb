// InstanceNorm: statistics over space, for each sample and channel.
#pragma once

#include "layers/channel_norm.h"

namespace norma {

struct InstanceNormConfig : ChannelNormOptions {
  static constexpr const char* type = "instance_norm";
  static constexpr const char* doc = "Over space, for each sample and channel.";
  static constexpr const char* source =
      "Ulyanov et al. 2016, arXiv 1607.08022; torch.nn.InstanceNorm";
  // PyTorch's defaults: neither a gain nor running statistics.
  InstanceNormConfig() : ChannelNormOptions{.affine = false, .track = false} {}
  [[nodiscard]] LayerPtr build(const Scope& scope, const Signature& in) const;
};

// y = weight * (x - mean) / sqrt(var + eps) + bias, mean and biased var over the space of a
// channel. Shapes: x (N, C, L) or (N, C, H, W). Inside a transformer x is (B, T, C), and the
// statistics are over T, of the tokens that count (pass.mask). The running statistics are as
// BatchNorm's, the mean of the samples' (a momentum of null: the plain average, where PyTorch's
// InstanceNorm leaves them as they were).
// Throws: without a spatial axis, and over one value.
class InstanceNorm final : public ChannelNorm {
 public:
  InstanceNorm(const InstanceNormConfig& config, const Scope& scope, const Signature& in);
  [[nodiscard]] Tensor forward(const Tensor& x, const Forward& pass) override;
};

}  // namespace norma
