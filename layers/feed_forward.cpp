#include "layers/feed_forward.h"

namespace norma {
namespace {

template <class Config>
constexpr bool is_gated = requires(const Config& c, const Tensor& x) {
  c.apply(x, x);
};

// The activations that linear() computes in its tiles.
template <class Config>
FusedActivation fused(const Config& config) {
  if constexpr (std::is_same_v<Config, ReluConfig>) return FusedActivation::relu;
  if constexpr (std::is_same_v<Config, SiluConfig>) return FusedActivation::silu;
  if constexpr (std::is_same_v<Config, GeluConfig>) {
    return config.approximate == GeluForm::erf ? FusedActivation::gelu : FusedActivation::gelu_tanh;
  }
  return FusedActivation::none;
}

Shape hidden_shape(const Signature& in, std::int64_t hidden) {
  Shape shape = in.shape;
  shape.set(-1, hidden);
  return shape;
}

}  // namespace

FeedForward::FeedForward(const Options& options, const Scope& scope, const Signature& in)
    : Layer(scope, in),
      activation_(options.activation),
      up_(scope.child("up"), in.shape, options.hidden,
          {.bias = options.bias, .features_last = in.features_last}),
      down_(scope.child("down"), hidden_shape(in, options.hidden), in.shape[-1],
            {.bias = options.bias,
             .role = ParameterKind::residual_matrix,
             .features_last = in.features_last}) {
  child("up", up_);
  activation_.visit([&]<class Config>(const Config&) {
    if constexpr (is_gated<Config>) {
      gate_ = std::make_unique<Linear>(
          scope.child("gate"), in.shape, options.hidden,
          Linear::Options{.bias = options.bias, .features_last = in.features_last});
      child("gate", *gate_);
    }
  });
  child("down", down_);
}

Tensor FeedForward::hidden(const Tensor& x, const Forward& pass) {
  return activation_.visit([&]<class Config>(const Config& config) {
    if constexpr (is_gated<Config>) {
      return config.apply(gate_->forward(x, pass), up_.forward(x, pass));
    } else if (fused(config) != FusedActivation::none) {
      return up_.forward(x, fused(config));
    } else {
      return config.apply(up_.forward(x, pass));
    }
  });
}

Tensor FeedForward::forward(const Tensor& x, const Forward& pass) {
  return down_.forward(hidden(x, pass), pass);
}

Tensor FeedForward::forward_onto(const Tensor& residual, const Tensor& x, const Forward& pass) {
  return down_.forward_onto(residual, hidden(x, pass), pass);
}

}  // namespace norma
