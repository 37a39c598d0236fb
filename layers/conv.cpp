#include "layers/conv.h"

#include "core/config/sizes.h"
#include "core/ops/conv.h"
#include "core/ops/movement.h"
#include "layers/channels.h"

namespace norma {
namespace {

std::int64_t convolved(const char* name, std::int64_t size, const ConvConfig& c) {
  const std::int64_t reach = c.dilation * (c.kernel - 1) + 1;
  const std::int64_t padded = size + 2 * c.padding;
  require(padded >= reach,
          "{}: the kernel of {} (dilation {}) is larger than the padded input of {}", name,
          c.kernel, c.dilation, padded);
  return (padded - reach) / c.stride + 1;
}

Signature convolved(const char* name, int axes, const Signature& in, const ConvConfig& c) {
  require_numbers(name, in);
  require(in.shape.rank() == axes + 1,
          "{}: expected samples of {} axes, channels first; got shape {}", name, axes + 1,
          in.shape);
  const std::int64_t channels = channels_of(name, in);
  require(channels > 0, "{}: the input has no channels", name);
  require(!c.in || *c.in == channels, "{}: `in` is {}; the input has {} channels", name,
          c.in.value_or(0), channels);
  require(channels % c.groups == 0 && c.out % c.groups == 0,
          "{}: {} groups must divide the {} channels and `out` of {}", name, c.groups, channels,
          c.out);
  require(!in.features_last || axes == 1,
          "{}: expected images, channels first; got sequences of features {}", name, in.shape);
  if (in.features_last) {
    return {.shape = Shape{convolved(name, in.shape[0], c), c.out},
            .vocab = 0,
            .source = {},
            .features_last = true};
  }
  Shape shape{c.out};
  for (int i = 1; i <= axes; ++i) shape.push_back(convolved(name, in.shape[i], c));
  return {.shape = shape};
}

}  // namespace

config::Fields ConvConfig::fields() {
  using namespace config;
  using C = ConvConfig;
  return {field("out", &C::out, "Channels of the result.", a_size(), required(),
                also_called("out_channels filters")),
          field("kernel", &C::kernel, "Size of the kernel along each axis.", a_size(), required()),
          field("stride", &C::stride, "Step of the kernel.", a_size()),
          field("padding", &C::padding, "Zeros around the input.", between(0, 1e6)),
          field("dilation", &C::dilation, "Distance between the kernel's cells.", a_size()),
          field("groups", &C::groups, "Groups of channels that do not mix.", a_size()),
          field("bias", &C::bias, "Add a bias a channel."),
          field("in", &C::in, "Channels of the input; checked if given.", a_size())};
}

LayerPtr Conv1dConfig::build(const Scope& scope, const Signature& input) const {
  return std::make_unique<Conv>(*this, 1, scope, input);
}

LayerPtr Conv2dConfig::build(const Scope& scope, const Signature& input) const {
  return std::make_unique<Conv>(*this, 2, scope, input);
}

Conv::Conv(const ConvConfig& config, int axes, const Scope& scope, const Signature& in)
    : Layer(scope, convolved(axes == 1 ? "conv1d" : "conv2d", axes, in, config)),
      config_(config),
      axes_(axes),
      features_last_(in.features_last) {
  Shape shape{config.out, channels_of(axes == 1 ? "conv1d" : "conv2d", in) / config.groups};
  for (int i = 0; i < axes; ++i) shape.push_back(config.kernel);
  const std::int64_t window = shape.numel(2, shape.rank());
  const std::int64_t fan_in = shape[1] * window, fan_out = config.out / config.groups * window;
  weight_ = parameter(scope, "weight", shape,
                      {.role = ParameterKind::matrix, .fan_in = fan_in, .fan_out = fan_out});
  if (config.bias) {
    bias_ = parameter(scope, "bias", Shape{config.out},
                      {.role = ParameterKind::bias, .fan_in = fan_in, .fan_out = fan_out});
  }
}

Tensor Conv::forward(const Tensor& x, const Forward&) {
  const ConvConfig& c = config_;
  if (axes_ == 2) {
    return conv2d(
        x, weight_, bias_,
        {.stride = c.stride, .padding = c.padding, .dilation = c.dilation, .groups = c.groups});
  }
  const Tensor y = conv1d(
      features_last_ ? transpose(x) : x, weight_, bias_,
      {.stride = c.stride, .padding = c.padding, .dilation = c.dilation, .groups = c.groups});
  return features_last_ ? transpose(y) : y;
}

}  // namespace norma
