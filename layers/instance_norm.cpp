#include "layers/instance_norm.h"

#include "core/ops/movement.h"
#include "core/ops/norm_rows.h"
#include "layers/channels.h"

namespace norma {

config::Fields InstanceNormConfig::fields() {
  using namespace config;
  return {
      field("eps", &InstanceNormConfig::eps, "Added to the variance, inside the root.",
            at_least(0)),
      field("momentum", &InstanceNormConfig::momentum,
            "Weight of the newest batch in the running statistics; null: the plain average.",
            at_least(0), at_most(1)),
      field("affine", &InstanceNormConfig::affine, "Learn a gain and a bias a channel."),
      field("track", &InstanceNormConfig::track, "Keep running statistics, used in evaluation.")};
}

LayerPtr InstanceNormConfig::build(const Scope& scope, const Signature& in) const {
  return std::make_unique<InstanceNorm>(*this, scope, in);
}

InstanceNorm::InstanceNorm(const InstanceNormConfig& config, const Scope& scope,
                           const Signature& in)
    : Layer(scope, in),
      eps_(config.eps),
      momentum_(config.momentum),
      features_last_(in.features_last) {
  const Shape shape{channels_of("instance_norm", in)};
  if (config.affine) {
    weight_ = parameter(scope, "weight", shape, {.role = ParameterKind::constant, .value = 1});
    bias_ = parameter(scope, "bias", shape, {.role = ParameterKind::constant, .value = 0});
  }
  if (config.track) {
    const DType dtype = is_half(scope.dtype()) ? DType::f32 : scope.dtype();
    statistics_ = make_running_statistics(shape.numel(), dtype);
    buffer("running_mean", statistics_.mean);
    buffer("running_var", statistics_.var);
    buffer("num_batches_tracked", statistics_.batches);
  }
}

Tensor InstanceNorm::forward(const Tensor& x, const Forward&) {
  const InstanceNormOptions options{.eps = eps_, .training = training(), .momentum = momentum_};
  if (!features_last_) return instance_norm(x, weight_, bias_, options, statistics_);
  return transpose(instance_norm(transpose(x), weight_, bias_, options, statistics_));
}

}  // namespace norma
