#include "layers/batch_norm.h"

#include "core/ops/movement.h"
#include "core/ops/norm_channels.h"
#include "layers/channels.h"

namespace norma {

config::Fields BatchNormConfig::fields() {
  using namespace config;
  return {
      field("eps", &BatchNormConfig::eps, "Added to the variance, inside the root.", at_least(0)),
      field("momentum", &BatchNormConfig::momentum,
            "Weight of the newest batch in the running statistics; null: the plain average.",
            at_least(0), at_most(1)),
      field("affine", &BatchNormConfig::affine, "Learn a gain and a bias a channel."),
      field("track", &BatchNormConfig::track,
            "Keep running statistics; without them evaluation uses the batch's.")};
}

LayerPtr BatchNormConfig::build(const Scope& scope, const Signature& in) const {
  return std::make_unique<BatchNorm>(*this, scope, in);
}

BatchNorm::BatchNorm(const BatchNormConfig& config, const Scope& scope, const Signature& in)
    : Layer(scope, in),
      eps_(config.eps),
      momentum_(config.momentum),
      features_last_(in.features_last) {
  const Shape shape{channels_of("batch_norm", in)};
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

Tensor BatchNorm::forward(const Tensor& x, const Forward&) {
  const BatchNormOptions options{.eps = eps_, .training = training(), .momentum = momentum_};
  if (!features_last_) return batch_norm(x, weight_, bias_, options, statistics_);
  return reshape(batch_norm(tokens_as_samples(x), weight_, bias_, options, statistics_), x.shape());
}

}  // namespace norma
