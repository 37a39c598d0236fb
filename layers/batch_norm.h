// BatchNorm: statistics of a channel over the whole batch, and running ones for evaluation.
#pragma once

#include "core/config/config.h"
#include "core/ops/running_statistics.h"
#include "layers/layer.h"

namespace norma {

struct BatchNormConfig {
  static constexpr const char* type = "batch_norm";
  static constexpr const char* doc = "Over the batch and space, for each channel.";
  static constexpr const char* source =
      "Ioffe & Szegedy 2015, arXiv 1502.03167; torch.nn.BatchNorm";
  double eps = 1e-5;
  std::optional<double> momentum = 0.1;
  bool affine = true;
  bool track = true;
  static config::Fields fields();
  [[nodiscard]] LayerPtr build(const Scope& scope, const Signature& in) const;
};

// y = weight * (x - mean) / sqrt(var + eps) + bias. In training mean and biased var are the
// batch's, and running = (1 - momentum) running + momentum batch, the running variance unbiased
// (momentum null: the plain average of all batches). In evaluation they are the running ones, or
// the batch's where `track` is false. Shapes: x (N, C), (N, C, L) or (N, C, H, W); weight, bias,
// running_mean, running_var (C). Inside a transformer x is (B, T, C), and the statistics are over B
// and T. Throws: in training, over one value a channel.
class BatchNorm final : public Layer {
 public:
  BatchNorm(const BatchNormConfig& config, const Scope& scope, const Signature& in);
  [[nodiscard]] Tensor forward(const Tensor& x, const Forward& pass) override;

 private:
  double eps_;
  Momentum momentum_;
  bool features_last_;
  Tensor weight_, bias_;
  RunningStatistics statistics_;
};

}  // namespace norma
