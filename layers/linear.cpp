#include "layers/linear.h"

#include "core/config/sizes.h"

namespace norma {
namespace {

Signature with_last(const Shape& in, std::int64_t out, bool features_last) {
  Shape shape = in;
  shape.set(-1, out);
  return {.shape = shape, .vocab = 0, .features_last = features_last};
}

}  // namespace

config::Fields LinearConfig::fields() {
  using namespace config;
  return {field("out", &LinearConfig::out, "Features of the result.", a_size(), required(),
                also_called("out_features units")),
          field("bias", &LinearConfig::bias, "Add a bias."),
          field("in", &LinearConfig::in, "Features of the input; checked if given.", a_size())};
}

LayerPtr LinearConfig::build(const Scope& scope, const Signature& input) const {
  require_numbers("linear", input);
  require(input.shape.rank() >= 1, "linear: expected an input with at least one axis");
  require(!in || *in == input.shape[-1], "linear: `in` is {}; the input has {} features",
          in.value_or(0), input.shape[-1]);
  return std::make_unique<Linear>(
      scope, input.shape, out, Linear::Options{.bias = bias, .features_last = input.features_last});
}

Linear::Linear(const Scope& scope, const Shape& in, std::int64_t out, const Options& options)
    : Layer(scope, with_last(in, out, options.features_last)) {
  const std::int64_t features = in[-1];
  weight_ = parameter(scope, "weight", Shape{out, features},
                      {.role = options.role, .fan_in = features, .fan_out = out});
  if (options.bias) {
    bias_ = parameter(scope, "bias", Shape{out},
                      {.role = ParameterKind::bias, .fan_in = features, .fan_out = out});
  }
}

Tensor Linear::forward(const Tensor& x, const Forward&) { return linear(x, weight_, bias_); }

Tensor Linear::forward_onto(const Tensor& residual, const Tensor& x, const Forward&) {
  return linear_onto(residual, x, weight_, bias_);
}

Tensor Linear::forward(const Tensor& x, FusedActivation activation) {
  return linear(x, weight_, bias_, {.activation = activation});
}

}  // namespace norma
