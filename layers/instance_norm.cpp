#include "layers/instance_norm.h"

#include "core/ops/movement.h"
#include "core/ops/norm_rows.h"

namespace norma {

LayerPtr InstanceNormConfig::build(const Scope& scope, const Signature& in) const {
  return std::make_unique<InstanceNorm>(*this, scope, in);
}

Tensor InstanceNorm::forward(const Tensor& x, const Forward&) {
  const InstanceNormOptions options{.eps = eps_, .training = training(), .momentum = momentum_};
  if (!features_last_) return instance_norm(x, weight_, bias_, options, statistics_);
  return transpose(instance_norm(transpose(x), weight_, bias_, options, statistics_));
}

}  // namespace norma
