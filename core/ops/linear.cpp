#include "core/ops/linear.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "core/autograd.h"
#include "core/kernels/activations.h"
#include "core/kernels/gemm.h"
#include "core/kernels/pointwise.h"
#include "core/op_watcher.h"
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

// The products of a map z = x weight^T + bias: x (rows, in), weight (out, in), z (rows, out).
struct MapSizes {
  std::int64_t rows = 0, in = 0, out = 0;
};

kernels::Product forward_product(const MapSizes& s) {
  return {.m = s.rows, .n = s.out, .k = s.in, .transpose_b = true};
}

// dweight = dz^T x
template <class T>
kernels::ProductCall<T> weight_gradient(const MapSizes& s, const T* dz, const T* x, Destination d) {
  return {.sizes = {.m = s.out, .n = s.in, .k = s.rows, .transpose_a = true},
          .a = dz,
          .b = x,
          .beta = T(d.accumulate),
          .c = d.tensor.mutable_data<T>()};
}

// dx = dz weight, and then what `more` adds.
template <class T>
kernels::ProductCall<T> input_gradient(const MapSizes& s, const kernels::Factors<T>& first,
                                       Destination d,
                                       std::span<const kernels::Factors<T>> more = {}) {
  return {.sizes = {.m = s.rows, .n = s.in, .k = s.out},
          .a = first.a,
          .b = first.b,
          .beta = T(d.accumulate),
          .c = d.tensor.mutable_data<T>(),
          .more = more};
}

// dbias = sum of dz over its rows
template <class T>
kernels::RowSumCall<T> bias_gradient(const MapSizes& s, const T* dz, Destination d) {
  return {.x = dz,
          .rows = s.rows,
          .cols = s.out,
          .accumulate = d.accumulate,
          .y = d.tensor.mutable_data<T>()};
}

// dz = dy * activation'(z); dx = dz weight, dweight = dz^T x, dbias = sum of dz over its rows.
void linear_backward(BackwardContext& ctx) {
  const auto activation = kernel_activation(ctx.attrs<LinearOptions>().activation);
  const bool has_bias = ctx.num_inputs() > 2;
  const Tensor x = ctx.saved(0), weight = ctx.saved(1);
  Tensor dz = ctx.take_grad_output();
  const MapSizes sizes{dz.shape().numel(0, dz.rank() - 1), weight.size(1), weight.size(0)};
  if (activation) dz = through_activation(ctx, *activation, std::move(dz));
  dispatch_compute(x.dtype(), "linear", [&]<class T>() {
    const T* g = dz.data<T>();
    std::array<kernels::ProductCall<T>, 2> products;
    std::size_t count = 0;
    kernels::RowSumCall<T> sum;
    if (ctx.needs(1)) {
      products[count++] = weight_gradient(sizes, g, x.data<T>(), ctx.destination(1));
    }
    if (ctx.needs(0)) {
      products[count++] = input_gradient<T>(sizes, {g, weight.data<T>()}, ctx.destination(0));
    }
    if (has_bias && ctx.needs(2)) sum = bias_gradient(sizes, g, ctx.destination(2));
    kernels::gemm_group(std::span<const kernels::ProductCall<T>>(products.data(), count),
                        std::span<const kernels::RowSumCall<T>>(&sum, sum.y ? 1 : 0));
  });
}

// --- linear_stack -------------------------------------------------------------------------------
constexpr std::size_t kMostMaps = 3;
static_assert(kMostMaps + 1 <= kernels::kMostInGroup);

struct StackAttrs {
  std::size_t maps = 0;
  bool bias = false;
};

// Inputs: x, the weights, the biases.
Tensor linear_stack_composed(std::span<const Tensor> inputs, const void* attrs) {
  const auto& a = *static_cast<const StackAttrs*>(attrs);
  std::vector<Tensor> parts;
  for (std::size_t i = 0; i < a.maps; ++i) {
    const Tensor y =
        linear(inputs[0], inputs[1 + i], a.bias ? inputs[1 + a.maps + i] : Tensor(), {});
    Shape one{1};
    for (std::int64_t size : y.shape()) one.push_back(size);
    parts.push_back(reshape(y, one));
  }
  return concatenate(parts, 0);
}

// dx = sum of dy[i] weights[i]; dweights[i] = dy[i]^T x, dbiases[i] = sum of dy[i] over its rows.
void linear_stack_backward(BackwardContext& ctx) {
  const auto& attrs = ctx.attrs<StackAttrs>();
  const int n = static_cast<int>(attrs.maps);
  const Tensor x = ctx.saved(0), dy = ctx.take_grad_output();
  const MapSizes sizes{x.shape().numel(0, x.rank() - 1), x.size(-1), dy.size(-1)};
  dispatch_compute(x.dtype(), "linear_stack", [&]<class T>() {
    const auto part = [&](int i) { return dy.data<T>() + i * sizes.rows * sizes.out; };
    std::array<kernels::ProductCall<T>, kMostMaps + 1> products;
    std::array<kernels::RowSumCall<T>, kMostMaps> sums;
    std::array<kernels::Factors<T>, kMostMaps> factors;
    std::size_t num_products = 0, num_sums = 0;
    for (int i = 0; i < n; ++i) {
      if (ctx.needs(1 + i)) {
        products[num_products++] =
            weight_gradient(sizes, part(i), x.data<T>(), ctx.destination(1 + i));
      }
      if (attrs.bias && ctx.needs(1 + n + i)) {
        sums[num_sums++] = bias_gradient(sizes, part(i), ctx.destination(1 + n + i));
      }
    }
    std::array<Tensor, kMostMaps> weights;  // which may have been widened for this moment alone
    if (ctx.needs(0)) {
      for (int i = n - 1; i >= 0; --i) {
        const auto k = static_cast<std::size_t>(n - 1 - i);
        weights[k] = ctx.saved(1 + i);
        factors[k] = {part(i), weights[k].data<T>()};
      }
      products[num_products++] = input_gradient<T>(sizes, factors[0], ctx.destination(0),
                                                   std::span(factors.data() + 1, attrs.maps - 1));
    }
    kernels::gemm_group(std::span<const kernels::ProductCall<T>>(products.data(), num_products),
                        std::span<const kernels::RowSumCall<T>>(sums.data(), num_sums));
  });
}

// What linear() asks of x, a weight and a bias.
void check(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  require(x.rank() >= 1, "{}: x must have at least one axis; got a scalar", op);
  const std::int64_t in = x.size(-1);
  require(weight.rank() == 2 && weight.size(1) == in,
          "{}: weight must have shape (out, {}), for the last axis of x {}; got {}", op, in,
          x.shape(), weight.shape());
  const std::int64_t out = weight.size(0);
  require(!bias.defined() || bias.shape() == Shape{out},
          "{}: bias must have shape ({}), for weight {}; got {}", op, out, weight.shape(), bias);
  const DType dtype = x.dtype();
  require(
      weight.dtype() == dtype && (!bias.defined() || bias.dtype() == dtype) && is_floating(dtype),
      "{}: x, weight and bias must have one floating type; got {}, {} and {}; convert with "
      "to(x, dtype)",
      op, name_of(dtype), name_of(weight.dtype()),
      bias.defined() ? name_of(bias.dtype()) : "no bias");
}

}  // namespace

extern const OpInfo add_op;  // of core/ops/arithmetic.cpp
extern const OpInfo linear_op;
extern const OpInfo linear_stack_op;
const OpInfo linear_op{"linear", linear_backward, linear_composed, linear_recompute};

namespace {

// linear() of f32 or f64, in whose result the residual, if there is one, is added.
Tensor run_linear(const Tensor& x, const Tensor& weight, const Tensor& bias, LinearOptions options,
                  const Tensor& residual) {
  Shape shape = x.shape();
  shape.set(-1, weight.size(0));
  const MapSizes sizes{shape.numel(0, shape.rank() - 1), x.size(-1), weight.size(0)};
  const auto activation = kernel_activation(options.activation);
  std::array<Tensor, 4> kept{x, weight};
  std::size_t count = 2;
  if (bias.defined()) kept[count++] = bias;
  const std::span<const Tensor> inputs(kept.data(), count);
  Tensor y = Tensor::empty(shape, x.dtype()), pre;
  const bool keep_pre =
      activation && !kernels::gradient_reads_output(*activation) && detail::should_record(inputs);
  if (keep_pre) pre = Tensor::empty(shape, x.dtype());
  dispatch_compute(x.dtype(), "linear", [&]<class T>() {
    kernels::Epilogue<T> epilogue;
    if (bias.defined()) epilogue.bias = bias.data<T>();
    if (keep_pre) epilogue.pre = pre.mutable_data<T>();
    epilogue.activation = activation;
    if (residual.defined()) epilogue.residual = residual.data<T>();
    kernels::gemm(forward_product(sizes), T(1), x.data<T>(), weight.data<T>(), T(0),
                  y.mutable_data<T>(), epilogue);
  });
  if (activation) kept[count++] = keep_pre ? pre : y;
  record(linear_op, std::span<Tensor>(&y, 1), inputs, std::span<const Tensor>(kept.data(), count),
         options);
  if (keep_pre) allow_recompute(y);
  return y;
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, LinearOptions options) {
  check("linear", x, weight, bias);
  const DType dtype = x.dtype();
  if (is_half(dtype)) {
    const Tensor wide_bias = bias.defined() ? to(bias, DType::f32) : bias;
    return to(linear(to(x, DType::f32), to(weight, DType::f32), wide_bias, options), dtype);
  }
  return run_linear(x, weight, bias, options, {});
}

Tensor linear_onto(const Tensor& residual, const Tensor& x, const Tensor& weight,
                   const Tensor& bias) {
  check("linear_onto", x, weight, bias);
  Shape shape = x.shape();
  shape.set(-1, weight.size(0));
  require(residual.shape() == shape && residual.dtype() == x.dtype(),
          "linear_onto: the residual must be {} {}, as the result; got {} {}", name_of(x.dtype()),
          shape, name_of(residual.dtype()), residual.shape());
  // Who watches ops is to see the product's values.
  if (is_half(x.dtype()) || op_watcher()) return residual + linear(x, weight, bias);
  // The product alone has a place in the graph, and none in memory.
  const Tensor product = run_linear(x, weight, bias, {}, residual);
  Tensor y = Tensor::view(product.storage(), product.offset_bytes(), shape, product.dtype());
  record(add_op, y, {residual, product}, {});
  return y;
}

const OpInfo linear_stack_op{"linear_stack", linear_stack_backward, linear_stack_composed};

Tensor linear_stack(const Tensor& x, std::span<const Tensor> weights,
                    std::span<const Tensor> biases) {
  const std::size_t n = weights.size();
  require(n >= 1 && n <= kMostMaps, "linear_stack: expected 1 to {} weights; got {}", kMostMaps, n);
  require(biases.empty() || biases.size() == n,
          "linear_stack: expected as many biases as weights, {}, or none; got {}", n,
          biases.size());
  for (std::size_t i = 0; i < n; ++i) {
    require(biases.empty() || biases[i].defined(), "linear_stack: bias {} is not defined", i);
    check("linear_stack", x, weights[i], biases.empty() ? Tensor() : biases[i]);
    require(weights[i].shape() == weights[0].shape(),
            "linear_stack: the weights must have one shape; got {} and {}", weights[0].shape(),
            weights[i].shape());
  }
  const DType dtype = x.dtype();
  std::array<Tensor, 1 + 2 * kMostMaps> kept{x};
  std::copy(weights.begin(), weights.end(), kept.begin() + 1);
  std::copy(biases.begin(), biases.end(), kept.begin() + 1 + static_cast<std::ptrdiff_t>(n));
  const std::span<const Tensor> inputs(kept.data(), 1 + n + biases.size());
  if (is_half(dtype)) {
    for (Tensor& t : kept) {
      if (t.defined()) t = to(t, DType::f32);
    }
    return to(linear_stack(kept[0], inputs.subspan(1, n), inputs.subspan(1 + n)), dtype);
  }
  const MapSizes sizes{x.shape().numel(0, x.rank() - 1), x.size(-1), weights[0].size(0)};
  Shape shape{static_cast<std::int64_t>(n)};
  for (std::int64_t size : x.shape()) shape.push_back(size);
  shape.set(-1, sizes.out);
  Tensor y = Tensor::empty(shape, dtype);
  dispatch_compute(dtype, "linear_stack", [&]<class T>() {
    std::array<kernels::ProductCall<T>, kMostMaps> products;
    for (std::size_t i = 0; i < n; ++i) {
      products[i] = {
          .sizes = forward_product(sizes),
          .a = x.data<T>(),
          .b = weights[i].data<T>(),
          .c = y.mutable_data<T>() + static_cast<std::int64_t>(i) * sizes.rows * sizes.out,
          .bias = biases.empty() ? nullptr : biases[i].data<T>()};
    }
    kernels::gemm_group(std::span<const kernels::ProductCall<T>>(products.data(), n),
                        std::span<const kernels::RowSumCall<T>>());
  });
  record(linear_stack_op, std::span<Tensor>(&y, 1), inputs, inputs, StackAttrs{n, !biases.empty()});
  return y;
}

}  // namespace norma
