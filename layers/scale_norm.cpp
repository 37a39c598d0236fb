#include "layers/scale_norm.h"

#include <cmath>

#include "core/ops/arithmetic.h"
#include "core/ops/cast.h"
#include "core/ops/reduce.h"

namespace norma {

config::Fields ScaleNormConfig::fields() {
  using namespace config;
  return {field("eps", &ScaleNormConfig::eps, "The least length to divide by.", above(0))};
}

LayerPtr ScaleNormConfig::build(const Scope& scope, const Signature& in) const {
  return std::make_unique<ScaleNorm>(*this, scope, in);
}

ScaleNorm::ScaleNorm(const ScaleNormConfig& config, const Scope& scope, const Signature& in)
    : Layer(scope, in), eps_(config.eps) {
  require_features("scale_norm", in);
  weight_ = parameter(
      scope, "weight", Shape{1},
      {.role = ParameterKind::constant, .value = std::sqrt(static_cast<double>(in.shape[-1]))});
}

Tensor ScaleNorm::forward(const Tensor& x, const Forward&) {
  // A half type has not the digits for a length. The division first: the gradient of
  // x (weight / length) would form weight / length^2, which leaves the range of f32 soon.
  const DType type = is_half(x.dtype()) ? DType::f32 : x.dtype();
  const Tensor wide = to(x, type), length = norm(wide, {-1}, Keep::yes);
  return to(wide / maximum(length, Tensor::scalar(eps_, type)) * to(weight_, type), x.dtype());
}

}  // namespace norma
