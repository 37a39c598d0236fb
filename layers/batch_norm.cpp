#include "layers/batch_norm.h"

#include "core/ops/movement.h"
#include "core/ops/norm_channels.h"
#include "layers/channels.h"

namespace norma {

LayerPtr BatchNormConfig::build(const Scope& scope, const Signature& in) const {
  return std::make_unique<BatchNorm>(*this, scope, in);
}

Tensor BatchNorm::forward(const Tensor& x, const Forward&) {
  const BatchNormOptions options{.eps = eps_, .training = training(), .momentum = momentum_};
  if (!features_last_) return batch_norm(x, weight_, bias_, options, statistics_);
  return reshape(batch_norm(tokens_as_samples(x), weight_, bias_, options, statistics_), x.shape());
}

}  // namespace norma
