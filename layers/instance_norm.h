// InstanceNorm: statistics over space, for each sample and channel.
#pragma once

#include "core/config/config.h"
#include "core/ops/running_statistics.h"
#include "layers/layer.h"

namespace norma {

struct InstanceNormConfig {
  static constexpr const char* type = "instance_norm";
  static constexpr const char* doc = "Over space, for each sample and channel.";
  static constexpr const char* source =
      "Ulyanov et al. 2016, arXiv 1607.08022; torch.nn.InstanceNorm";
  double eps = 1e-5;
  std::optional<double> momentum = 0.1;
  bool affine = false;
  bool track = false;
  static config::Fields fields();
  [[nodiscard]] LayerPtr build(const Scope& scope, const Signature& in) const;
};

// y = weight * (x - mean) / sqrt(var + eps) + bias, mean and biased var over the space of a
// channel. Shapes: x (N, C, L) or (N, C, H, W); weight and bias (C). Inside a transformer x is (B,
// T, C), and the statistics are over T. Throws: without a spatial axis, and in training over one
// value.
class InstanceNorm final : public Layer {
 public:
  InstanceNorm(const InstanceNormConfig& config, const Scope& scope, const Signature& in);
  [[nodiscard]] Tensor forward(const Tensor& x, const Forward& pass) override;

 private:
  double eps_;
  Momentum momentum_;
  bool features_last_;
  Tensor weight_, bias_;
  RunningStatistics statistics_;
};

}  // namespace norma
