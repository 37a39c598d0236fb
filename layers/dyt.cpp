#include "layers/dyt.h"

#include "core/ops/arithmetic.h"
#include "core/ops/math.h"

namespace norma {

config::Fields DytConfig::fields() {
  using namespace config;
  return {field("alpha", &DytConfig::alpha, "What the learned factor on x starts at.")};
}

LayerPtr DytConfig::build(const Scope& scope, const Signature& in) const {
  return std::make_unique<Dyt>(*this, scope, in);
}

Dyt::Dyt(const DytConfig& config, const Scope& scope, const Signature& in) : Layer(scope, in) {
  require_features("dyt", in);
  const Shape features{in.shape[-1]};
  const auto constant = [](double value) {
    return ParameterKind{.role = ParameterKind::constant, .value = value};
  };
  alpha_ = parameter(scope, "alpha", Shape{1}, constant(config.alpha));
  weight_ = parameter(scope, "weight", features, constant(1));
  bias_ = parameter(scope, "bias", features, constant(0));
}

Tensor Dyt::forward(const Tensor& x, const Forward&) { return tanh(x * alpha_) * weight_ + bias_; }

}  // namespace norma
