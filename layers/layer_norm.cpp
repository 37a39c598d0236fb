#include "layers/layer_norm.h"

#include "core/config/sizes.h"
#include "core/ops/norm_rows.h"

namespace norma {

config::Fields LayerNormConfig::fields() {
  using namespace config;
  return {
      field("eps", &LayerNormConfig::eps, "Added to the variance, inside the root.", at_least(0)),
      field("affine", &LayerNormConfig::affine, "Learn a gain (and a bias)."),
      field("bias", &LayerNormConfig::bias, "Learn a bias where `affine`."),
      field("shape", &LayerNormConfig::shape,
            "The last axes that are normalised together; empty: the last one.", a_size()),
      field("statistics", &LayerNormConfig::statistics, kStatisticsDoc)};
}

LayerPtr LayerNormConfig::build(const Scope& scope, const Signature& in) const {
  return std::make_unique<LayerNorm>(*this, scope, in);
}

LayerNorm::LayerNorm(const LayerNormConfig& config, const Scope& scope, const Signature& in)
    : Layer(scope, in),
      eps_(config.eps),
      statistics_(config.statistics),
      axes_(std::max(1, static_cast<int>(config.shape.size()))) {
  require_numbers("layer_norm", in);
  const int rank = in.shape.rank();
  require(axes_ <= rank, "layer_norm: `shape` has {} axes; the input {} has only {}", axes_,
          in.shape, rank);
  const Shape shape = in.shape.sub(rank - axes_, rank);
  require(config.shape.empty() || shape == Shape(config.shape),
          "layer_norm: expected an input that ends in {}; got {}", Shape(config.shape), in.shape);
  if (!config.affine) return;
  weight_ = parameter(scope, "weight", shape, {.role = ParameterKind::constant, .value = 1});
  if (config.bias) {
    bias_ = parameter(scope, "bias", shape, {.role = ParameterKind::constant, .value = 0});
  }
}

Tensor LayerNorm::forward(const Tensor& x, const Forward&) {
  return layer_norm(x, weight_, bias_, {.eps = eps_, .axes = axes_, .statistics = statistics_});
}

}  // namespace norma
