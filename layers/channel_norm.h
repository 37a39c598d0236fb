// What BatchNorm and InstanceNorm share: a gain and a bias a channel, and running statistics.
#pragma once

#include "core/config/config.h"
#include "core/ops/running_statistics.h"
#include "layers/layer.h"

namespace norma {

struct ChannelNormOptions {
  double eps = 1e-5;
  std::optional<double> momentum = 0.1;
  bool affine = true;
  bool track = true;
  // In evaluation only running statistics are the same for all tokens.
  [[nodiscard]] bool per_token() const { return track; }
  static config::Fields fields();
};

// Names: weight, bias (where `affine`); running_mean, running_var, num_batches_tracked (where
// `track`); each (C), the counter a scalar. See Note [Momentum] in core/ops/running_statistics.h.
class ChannelNorm : public Layer {
 protected:
  // `name` is the layer's type, for errors.
  ChannelNorm(const char* name, const ChannelNormOptions& options, const Scope& scope,
              const Signature& in);

  double eps_;
  Momentum momentum_;
  bool features_last_;
  Tensor weight_, bias_;
  RunningStatistics statistics_;
};

}  // namespace norma
