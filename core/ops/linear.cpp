#include "core/ops/linear.h"

#include <array>
#include <optional>

#include "core/autograd.h"
#include "core/kernels/activations.h"
#include "core/kernels/gemm.h"
#include "core/kernels/pointwise.h"
#include "core/ops/activations.h"
#include "core/ops/arithmetic.h"
#include "core/ops/cast.h"
#include "core/ops/matmul.h"
#include "core/ops/movement.h"

namespace norma {
namespace {

std::optional<kernels::Activation> kernel_activation(FusedActivation activation) {
  switch (activation) {
    case FusedActivation::relu:
      return kernels::Activation::relu;
    case FusedActivation::gelu:
      return kernels::Activation::gelu;
    case FusedActivation::gelu_tanh:
      return kernels::Activation::gelu_tanh;
    case FusedActivation::silu:
      return kernels::Activation::silu;
    case FusedActivation::none:
      break;
  }
  return std::nullopt;
}

Tensor activate(FusedActivation activation, const Tensor& x) {
  switch (activation) {
    case FusedActivation::relu:
      return relu(x);
    case FusedActivation::gelu:
      return gelu(x);
    case FusedActivation::gelu_tanh:
      return gelu(x, GeluForm::tanh);
    case FusedActivation::silu:
      return silu(x);
    case FusedActivation::none:
      break;
  }
  return x;
}

Tensor linear_composed(std::span<const Tensor> inputs, const void* attrs) {
  const Tensor& x = inputs[0];
  Tensor y = x.rank() == 1
                 ? reshape(matmul(reshape(x, {1, x.size(0)}), inputs[1], {.transpose_b = true}),
                           {inputs[1].size(0)})
                 : matmul(x, inputs[1], {.transpose_b = true});
  if (inputs.size() > 2) y = add(y, inputs[2]);
  return activate(static_cast<const LinearOptions*>(attrs)->activation, y);
}

// Where z = x weight^T + bias stands among what was saved, if it was.
int place_of_pre(const BackwardContext& ctx) { return ctx.num_inputs() > 2 ? 3 : 2; }

// y = activation(z), and beside it activation'(z), in the memory of z where nobody needs it later.
void linear_recompute(BackwardContext& ctx) {
  const auto activation = *kernel_activation(ctx.attrs<LinearOptions>().activation);
  Tensor slope = ctx.take_saved(place_of_pre(ctx));
  const Tensor z = slope.defined() ? slope : ctx.saved(place_of_pre(ctx));
  if (!slope.defined()) slope = Tensor::empty(z.shape(), z.dtype());
  Tensor y = Tensor::empty(z.shape(), z.dtype());
  dispatch_compute(z.dtype(), "linear", [&]<class T>() {
    kernels::activate_with_slope(activation, z.data<T>(), y.mutable_data<T>(),
                                 slope.mutable_data<T>(), z.numel());
  });
  ctx.set_recomputed(std::move(y), std::move(slope));
}

// dy * activation'(z), in the memory of dy where nobody else sees it.
Tensor through_activation(BackwardContext& ctx, kernels::Activation activation, Tensor dy) {
  Tensor dz = BackwardContext::exclusive(dy) ? dy : Tensor::empty(dy.shape(), dy.dtype());
  const Tensor slope = ctx.recomputed_beside();
  const Tensor z = slope.defined() ? slope : ctx.saved(place_of_pre(ctx));
  dispatch_compute(dy.dtype(), "linear", [&]<class T>() {
    if (slope.defined()) {
      kernels::binary(kernels::Binary::mul,
                      kernels::broadcast_plan(dy.shape(), {&dy.shape(), &dy.shape()}), dy.data<T>(),
                      slope.data<T>(), dz.mutable_data<T>());
    } else {
      kernels::activate_backward(activation, 0.0, z.data<T>(), dy.data<T>(), false,
                                 dz.mutable_data<T>(), dy.numel());
    }
  });
  return dz;
}

// dz = dy * activation'(z); dx = dz weight, dweight = dz^T x, dbias = sum of dz over its rows.
void linear_backward(BackwardContext& ctx) {
  const auto activation = kernel_activation(ctx.attrs<LinearOptions>().activation);
  const bool has_bias = ctx.num_inputs() > 2;
  const Tensor x = ctx.saved(0), weight = ctx.saved(1);
  const std::int64_t out = weight.size(0), in = weight.size(1);
  Tensor dz = ctx.take_grad_output();
  const std::int64_t rows = dz.shape().numel(0, dz.rank() - 1);
  if (activation) dz = through_activation(ctx, *activation, std::move(dz));
  dispatch_compute(x.dtype(), "linear", [&]<class T>() {
    const T* g = dz.data<T>();
    std::array<kernels::ProductCall<T>, 2> products;
    std::size_t count = 0;
    std::optional<kernels::RowSumCall<T>> sum;
    if (ctx.needs(1)) {
      Destination d = ctx.destination(1);
      products[count++] = {{.m = out, .n = in, .k = rows, .transpose_a = true},
                           g,
                           x.data<T>(),
                           T(d.accumulate),
                           d.tensor.mutable_data<T>()};
    }
    if (ctx.needs(0)) {
      Destination d = ctx.destination(0);
      products[count++] = {{.m = rows, .n = in, .k = out},
                           g,
                           weight.data<T>(),
                           T(d.accumulate),
                           d.tensor.mutable_data<T>()};
    }
    if (has_bias && ctx.needs(2)) {
      Destination d = ctx.destination(2);
      sum = {g, rows, out, d.accumulate, d.tensor.mutable_data<T>()};
    }
    kernels::gemm_group(std::span<const kernels::ProductCall<T>>(products.data(), count), sum);
  });
}

}  // namespace

extern const OpInfo linear_op;
const OpInfo linear_op{"linear", linear_backward, linear_composed, linear_recompute};

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, LinearOptions options) {
  require(x.rank() >= 1, "linear: x must have at least one axis; got a scalar");
  const std::int64_t in = x.size(-1);
  require(weight.rank() == 2 && weight.size(1) == in,
          "linear: weight must have shape (out, {}), for the last axis of x {}; got {}", in,
          x.shape(), weight.shape());
  const std::int64_t out = weight.size(0);
  require(!bias.defined() || bias.shape() == Shape{out},
          "linear: bias must have shape ({}), for weight {}; got {}", out, weight.shape(), bias);
  const DType dtype = x.dtype();
  require(
      weight.dtype() == dtype && (!bias.defined() || bias.dtype() == dtype) && is_floating(dtype),
      "linear: x, weight and bias must have one floating type; got {}, {} and {}; convert with "
      "to(x, dtype)",
      name_of(dtype), name_of(weight.dtype()), bias.defined() ? name_of(bias.dtype()) : "no bias");
  if (is_half(dtype)) {
    const Tensor wide_bias = bias.defined() ? to(bias, DType::f32) : bias;
    return to(linear(to(x, DType::f32), to(weight, DType::f32), wide_bias, options), dtype);
  }
  Shape shape = x.shape();
  shape.set(-1, out);
  const auto activation = kernel_activation(options.activation);
  std::array<Tensor, 4> kept{x, weight};
  std::size_t count = 2;
  if (bias.defined()) kept[count++] = bias;
  const std::span<const Tensor> inputs(kept.data(), count);
  Tensor y = Tensor::empty(shape, dtype), pre;
  const bool keep_pre =
      activation && !kernels::gradient_reads_output(*activation) && detail::should_record(inputs);
  if (keep_pre) pre = Tensor::empty(shape, dtype);
  dispatch_compute(dtype, "linear", [&]<class T>() {
    kernels::Epilogue<T> epilogue;
    if (bias.defined()) epilogue.bias = bias.data<T>();
    if (keep_pre) epilogue.pre = pre.mutable_data<T>();
    epilogue.activation = activation;
    kernels::gemm({.m = shape.numel(0, shape.rank() - 1), .n = out, .k = in, .transpose_b = true},
                  T(1), x.data<T>(), weight.data<T>(), T(0), y.mutable_data<T>(), epilogue);
  });
  if (activation) kept[count++] = keep_pre ? pre : y;
  record(linear_op, std::span<Tensor>(&y, 1), inputs, std::span<const Tensor>(kept.data(), count),
         options);
  if (keep_pre) allow_recompute(y);
  return y;
}

}  // namespace norma
