#include "layers/rms_norm.h"

namespace norma {

config::Fields RmsNormConfig::fields() {
  using namespace config;
  return {
      field("eps", &RmsNormConfig::eps, "Added to the mean square, inside the root.", at_least(0)),
      field("affine", &RmsNormConfig::affine, "Learn a gain."),
      field("unit_offset", &RmsNormConfig::unit_offset,
            "The gain is 1 + g with g starting at 0 (Gemma)."),
      field("p", &RmsNormConfig::p,
            "Partial RMSNorm: the first ceil(n p) features enter the mean square.", above(0),
            at_most(1)),
      field("cast", &RmsNormConfig::cast,
            "In bf16 and f16: round after the gain (Gemma, OLMo) or before it (LLaMA, T5)."),
      field("statistics", &RmsNormConfig::statistics, kStatisticsDoc)};
}

LayerPtr RmsNormConfig::build(const Scope& scope, const Signature& in) const {
  return std::make_unique<RmsNorm>(*this, scope, in);
}

RmsNorm::RmsNorm(const RmsNormConfig& config, const Scope& scope, const Signature& in)
    : Layer(scope, in),
      options_{.eps = config.eps,
               .unit_offset = config.unit_offset,
               .p = config.p,
               .cast = config.cast,
               .statistics = config.statistics} {
  require_features("rms_norm", in);
  if (!config.affine) return;
  weight_ = parameter(scope, "weight", Shape{in.shape[-1]},
                      {.role = ParameterKind::constant, .value = config.unit_offset ? 0.0 : 1.0});
}

Tensor RmsNorm::forward(const Tensor& x, const Forward&) { return rms_norm(x, weight_, options_); }

}  // namespace norma
