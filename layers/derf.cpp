#include "layers/derf.h"

#include "core/ops/arithmetic.h"
#include "core/ops/math.h"

namespace norma {

config::Fields DerfConfig::fields() {
  using namespace config;
  return {field("alpha", &DerfConfig::alpha, "What the learned factor on x starts at.")};
}

LayerPtr DerfConfig::build(const Scope& scope, const Signature& in) const {
  return std::make_unique<Derf>(*this, scope, in);
}

Derf::Derf(const DerfConfig& config, const Scope& scope, const Signature& in) : Layer(scope, in) {
  require_features("derf", in);
  const Shape features{in.shape[-1]};
  const auto constant = [](double value) {
    return ParameterKind{.role = ParameterKind::constant, .value = value};
  };
  alpha_ = parameter(scope, "alpha", Shape{1}, constant(config.alpha));
  shift_ = parameter(scope, "shift", Shape{1}, constant(0));
  weight_ = parameter(scope, "weight", features, constant(1));
  bias_ = parameter(scope, "bias", features, constant(0));
}

Tensor Derf::forward(const Tensor& x, const Forward&) {
  return erf(x * alpha_ + shift_) * weight_ + bias_;
}

}  // namespace norma
