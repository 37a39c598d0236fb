#include "core/ops/conv.h"

#include <array>
#include <vector>

#include "core/autograd.h"
#include "core/kernels/conv.h"
#include "core/kernels/pointwise.h"
#include "core/ops/arithmetic.h"
#include "core/ops/cast.h"
#include "core/ops/indexing.h"
#include "core/ops/matmul.h"
#include "core/ops/movement.h"

namespace norma {
namespace {

using kernels::ConvSizes;

// Gathers what every output reads, then multiplies.
Tensor conv2d_composed(std::span<const Tensor> inputs, const void* attrs) {
  const auto& s = *static_cast<const ConvSizes*>(attrs);
  const Tensor padded =
      pad(pad(inputs[0], 2, s.padding_h, s.padding_h), 3, s.padding_w, s.padding_w);
  const std::int64_t h = padded.size(2), w = padded.size(3);
  std::vector<std::int64_t> index;
  for (std::int64_t n = 0; n < s.n; ++n) {
    for (std::int64_t c = 0; c < s.channels; ++c) {
      for (std::int64_t a = 0; a < s.kernel_h; ++a) {
        for (std::int64_t b = 0; b < s.kernel_w; ++b) {
          for (std::int64_t i = 0; i < s.out_h; ++i) {
            for (std::int64_t j = 0; j < s.out_w; ++j) {
              index.push_back((c * h + i * s.stride_h + a * s.dilation_h) * w + j * s.stride_w +
                              b * s.dilation_w);
            }
          }
        }
      }
    }
  }
  const std::int64_t rows = s.group_channels() * s.taps();
  const Tensor ids = Tensor::from_ids({s.n, s.channels * s.taps() * s.out_pixels()}, index);
  const Tensor columns = reshape(gather(reshape(padded, {s.n, s.channels * h * w}), ids, 1),
                                 {s.n, s.groups, rows, s.out_pixels()});
  const Tensor weight = reshape(inputs[1], {s.groups, s.group_outputs(), rows});
  Tensor y = reshape(matmul(weight, columns), {s.n, s.outputs, s.out_h, s.out_w});
  if (inputs.size() > 2) y = add(y, reshape(inputs[2], {s.outputs, 1, 1}));
  return y;
}

void conv2d_backward(BackwardContext& ctx) {
  const auto& s = ctx.attrs<ConvSizes>();
  const Tensor x = ctx.saved(0), weight = ctx.saved(1);
  const Tensor& dy = ctx.grad_output();
  dispatch_compute(x.dtype(), "conv2d", [&]<class T>() {
    const T* g = dy.data<T>();
    if (ctx.needs(0)) {
      Destination d = ctx.destination(0);
      if (d.accumulate) {
        Tensor dx = Tensor::empty(x.shape(), x.dtype());
        kernels::conv_backward_input(s, g, weight.data<T>(), dx.mutable_data<T>());
        kernels::add_inplace(d.tensor.mutable_data<T>(), dx.data<T>(), dx.numel());
      } else {
        kernels::conv_backward_input(s, g, weight.data<T>(), d.tensor.mutable_data<T>());
      }
    }
    if (ctx.needs(1)) {
      Destination d = ctx.destination(1);
      kernels::conv_backward_weight(s, x.data<T>(), g, d.accumulate, d.tensor.mutable_data<T>());
    }
    if (ctx.num_inputs() > 2 && ctx.needs(2)) {
      Destination d = ctx.destination(2);
      kernels::conv_backward_bias(s, g, d.accumulate, d.tensor.mutable_data<T>());
    }
  });
}

// What conv1d and conv2d check alike. `axes` describes x, `kernel` the last axes of weight.
void check_inputs(const char* op, const char* axes, int rank, const char* kernel, const Tensor& x,
                  const Tensor& weight, const Tensor& bias, std::int64_t groups) {
  require(x.rank() == rank, "{}: x must have the axes ({}); got {}", op, axes, x.shape());
  require(groups >= 1, "{}: groups must be at least 1; got {}", op, groups);
  const std::int64_t channels = x.size(1);
  require(channels % groups == 0, "{}: groups must divide the channels of x {}; got {}", op,
          x.shape(), groups);
  require(weight.rank() == rank && weight.size(1) == channels / groups,
          "{}: weight must have shape (outputs, {}, {}), for x {} and groups {}; got {}", op,
          channels / groups, kernel, x.shape(), groups, weight.shape());
  const std::int64_t outputs = weight.size(0);
  require(outputs % groups == 0, "{}: groups must divide the outputs of weight {}; got {}", op,
          weight.shape(), groups);
  require(!bias.defined() || bias.shape() == Shape{outputs},
          "{}: bias must have shape ({}), for weight {}; got {}", op, outputs, weight.shape(),
          bias);
  require(is_floating(x.dtype()) && weight.dtype() == x.dtype() &&
              (!bias.defined() || bias.dtype() == x.dtype()),
          "{}: x, weight and bias must have one floating type; got {}, {} and {}; convert with "
          "to(x, dtype)",
          op, name_of(x.dtype()), name_of(weight.dtype()),
          bias.defined() ? name_of(bias.dtype()) : "no bias");
}

}  // namespace

extern const OpInfo conv2d_op;
const OpInfo conv2d_op{"conv2d", conv2d_backward, conv2d_composed};

namespace {

// Checked inputs, f32 or f64.
Tensor run(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias,
           const Conv2dOptions& options) {
  const Extent kernel{weight.size(2), weight.size(3)};
  const Extent out = window_counts(op, {x.size(2), x.size(3)}, kernel, options.stride,
                                   options.padding, options.dilation);
  const ConvSizes s{.n = x.size(0),
                    .channels = x.size(1),
                    .h = x.size(2),
                    .w = x.size(3),
                    .outputs = weight.size(0),
                    .kernel_h = kernel.h,
                    .kernel_w = kernel.w,
                    .out_h = out.h,
                    .out_w = out.w,
                    .stride_h = options.stride.h,
                    .stride_w = options.stride.w,
                    .padding_h = options.padding.h,
                    .padding_w = options.padding.w,
                    .dilation_h = options.dilation.h,
                    .dilation_w = options.dilation.w,
                    .groups = options.groups};
  Tensor y = Tensor::empty({s.n, s.outputs, s.out_h, s.out_w}, x.dtype());
  dispatch_compute(x.dtype(), op, [&]<class T>() {
    kernels::conv_forward(s, x.data<T>(), weight.data<T>(),
                          bias.defined() ? bias.data<T>() : nullptr, y.mutable_data<T>());
  });
  const std::array<Tensor, 3> kept{x, weight, bias};
  const std::span<const Tensor> inputs(kept.data(), bias.defined() ? 3 : 2);
  record(conv2d_op, std::span<Tensor>(&y, 1), inputs, inputs, s);
  return y;
}

}  // namespace

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, Conv2dOptions options) {
  check_inputs("conv2d", "samples, channels, height, width", 4, "height, width", x, weight, bias,
               options.groups);
  check_extent("conv2d", "kernel", {weight.size(2), weight.size(3)}, 1);
  check_extent("conv2d", "stride", options.stride, 1);
  check_extent("conv2d", "padding", options.padding, 0);
  check_extent("conv2d", "dilation", options.dilation, 1);
  if (is_half(x.dtype())) {
    const Tensor wide_bias = bias.defined() ? to(bias, DType::f32) : bias;
    return to(run("conv2d", to(x, DType::f32), to(weight, DType::f32), wide_bias, options),
              x.dtype());
  }
  return run("conv2d", x, weight, bias, options);
}

Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, Conv1dOptions options) {
  check_inputs("conv1d", "samples, channels, length", 3, "length", x, weight, bias, options.groups);
  check_extent("conv1d", "kernel", weight.size(2), 1);
  check_extent("conv1d", "stride", options.stride, 1);
  check_extent("conv1d", "padding", options.padding, 0);
  check_extent("conv1d", "dilation", options.dilation, 1);
  const Conv2dOptions flat{.stride = {1, options.stride},
                           .padding = {0, options.padding},
                           .dilation = {1, options.dilation},
                           .groups = options.groups};
  if (is_half(x.dtype())) {
    const Tensor wide_bias = bias.defined() ? to(bias, DType::f32) : bias;
    return to(conv1d(to(x, DType::f32), to(weight, DType::f32), wide_bias, options), x.dtype());
  }
  const Tensor y =
      run("conv1d", reshape(x, {x.size(0), x.size(1), 1, x.size(2)}),
          reshape(weight, {weight.size(0), weight.size(1), 1, weight.size(2)}), bias, flat);
  return reshape(y, {y.size(0), y.size(1), y.size(3)});
}

}  // namespace norma
