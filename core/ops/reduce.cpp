#include "core/ops/reduce.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/kernels/reduce.h"
#include "core/kernels/softmax.h"
#include "core/ops/arithmetic.h"
#include "core/ops/broadcast.h"
#include "core/ops/cast.h"
#include "core/ops/compare.h"
#include "core/ops/movement.h"
#include "core/ops/softmax.h"

namespace norma {
namespace {

struct ReduceAttrs {
  AxisMask mask;
};
struct VarAttrs {
  AxisMask mask;
  int correction;
};

bool is_reduced(AxisMask mask, int axis) { return (mask >> axis & 1) != 0; }

// x with its reduced axes last, and so seen as (outer, n, 1), unless they already stand side by
// side. Recorded where x is.
struct Arranged {
  Tensor x;
  AxisSplit split;
};
Arranged arrange(const Tensor& x, AxisMask mask) {
  const Shape& shape = x.shape();
  int first = shape.rank(), last = -1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (!is_reduced(mask, i) || shape[i] == 1) continue;
    first = std::min(first, i);
    last = i;
  }
  if (last < 0) return {x, {x.numel(), 1, 1}};
  bool together = true;
  for (int i = first; i <= last; ++i) together = together && (is_reduced(mask, i) || shape[i] == 1);
  if (together) {
    return {
        x,
        {shape.numel(0, first), shape.numel(first, last + 1), shape.numel(last + 1, shape.rank())}};
  }
  std::vector<int> order;
  for (int i = 0; i < shape.rank(); ++i) {
    if (!is_reduced(mask, i)) order.push_back(i);
  }
  for (int i = 0; i < shape.rank(); ++i) {
    if (is_reduced(mask, i)) order.push_back(i);
  }
  const std::int64_t n = reduced_count(shape, mask);
  return {permute(x, order), {n == 0 ? 0 : x.numel() / n, n, 1}};
}

// `t`, of the shape without the reduced axes, with size 1 in their place.
Tensor kept(const BackwardContext& ctx, const Tensor& t, AxisMask mask) {
  return reshape(t, reduced_shape(ctx.input_shape(0), mask, Keep::yes));
}

void require_elements(const char* op, const Tensor& x, AxisMask mask) {
  require(reduced_count(x.shape(), mask) > 0,
          "{}: expected at least one element to reduce; got shape {}", op, x.shape());
}

// Computes a half type in f32 and rounds once. The casts are recorded.
template <class F>
Tensor in_f32(const Tensor& x, F f) {
  return to(f(to(x, DType::f32)), x.dtype());
}

void extreme_backward(BackwardContext& ctx) {
  if (!ctx.needs(0)) return;
  const AxisMask mask = ctx.attrs<ReduceAttrs>().mask;
  const Tensor x = ctx.saved(0), y = kept(ctx, ctx.saved(1), mask);
  // Which elements reach the extreme is a constant: it is not recorded.
  const Tensor reach = to(eq(x.detach(), y.detach()), x.dtype());
  const Tensor count = sum_to(reach, y.shape());
  ctx.set_grad(0, mul(reach, div(kept(ctx, ctx.grad_output(), mask), count)));
}

Tensor extreme(const OpInfo& op, kernels::Extreme which, const Tensor& x, const Axes& axes,
               Keep keep) {
  if (is_half(x.dtype())) {
    return in_f32(x, [&](const Tensor& t) { return extreme(op, which, t, axes, keep); });
  }
  const AxisMask mask = axis_mask(op.name, x.shape(), axes);
  require_elements(op.name, x, mask);
  const Arranged a = arrange(x.detach(), mask);
  Tensor y = Tensor::empty(reduced_shape(x.shape(), mask, keep), x.dtype());
  dispatch_compute(x.dtype(), op.name, [&]<class T>() {
    kernels::extreme(which, a.x.data<T>(), a.split.outer, a.split.n, a.split.inner,
                     y.mutable_data<T>());
  });
  record(op, y, {x}, {x, y}, ReduceAttrs{mask});
  return y;
}

// The sums of squares over the axes, in f64.
std::vector<double> squares(const char* op, kernels::Centre centre, const Tensor& x,
                            AxisMask mask) {
  const Arranged a = arrange(x.detach(), mask);
  std::vector<double> sums(static_cast<std::size_t>(a.split.outer * a.split.inner));
  dispatch_compute(x.dtype(), op, [&]<class T>() {
    kernels::sum_squares(centre, a.x.data<T>(), a.split.outer, a.split.n, a.split.inner,
                         sums.data());
  });
  return sums;
}

}  // namespace

Tensor sum(const Tensor& x, const Axes& axes, Keep keep) {
  const AxisMask mask = axis_mask("sum", x.shape(), axes);
  const Tensor s = sum_to(x, reduced_shape(x.shape(), mask, Keep::yes));
  return reshape(s, reduced_shape(x.shape(), mask, keep));
}

Tensor mean(const Tensor& x, const Axes& axes, Keep keep) {
  if (is_half(x.dtype())) {
    return in_f32(x, [&](const Tensor& t) { return mean(t, axes, keep); });
  }
  const AxisMask mask = axis_mask("mean", x.shape(), axes);
  require_elements("mean", x, mask);
  return sum(x, axes, keep) / static_cast<double>(reduced_count(x.shape(), mask));
}

extern const OpInfo max_op, min_op, var_op, norm_op, logsumexp_op;
const OpInfo max_op{"max", extreme_backward};
const OpInfo min_op{"min", extreme_backward};

Tensor max(const Tensor& x, const Axes& axes, Keep keep) {
  return extreme(max_op, kernels::Extreme::max, x, axes, keep);
}

Tensor min(const Tensor& x, const Axes& axes, Keep keep) {
  return extreme(min_op, kernels::Extreme::min, x, axes, keep);
}

Tensor argmax(const Tensor& x, int axis, Keep keep) {
  if (is_half(x.dtype())) return argmax(to(x.detach(), DType::f32), axis, keep);
  const int a = checked_axis("argmax", x.shape(), axis);
  const AxisMask mask = AxisMask{1} << a;
  require_elements("argmax", x, mask);
  Tensor y = Tensor::empty(reduced_shape(x.shape(), mask, keep), DType::i64);
  const AxisSplit s = split_at(x.shape(), a);
  dispatch_compute(x.dtype(), "argmax", [&]<class T>() {
    kernels::argmax(x.data<T>(), s.outer, s.n, s.inner, y.mutable_data<std::int64_t>());
  });
  return y;
}

// dx = 2 / (n - correction) * (x - mean) * dy; the mean's own part sums to zero.
const OpInfo var_op{"var", [](BackwardContext& ctx) {
                      if (!ctx.needs(0)) return;
                      const auto& a = ctx.attrs<VarAttrs>();
                      const Tensor x = ctx.saved(0);
                      const Tensor dy = kept(ctx, ctx.grad_output(), a.mask);
                      const auto n = static_cast<double>(reduced_count(x.shape(), a.mask));
                      const Tensor centred = sub(x, sum_to(x, dy.shape()) / n);
                      ctx.set_grad(0, mul(centred, mul_scalar(dy, 2.0 / (n - a.correction))));
                    }};

Tensor var(const Tensor& x, const Axes& axes, VarOptions options) {
  if (is_half(x.dtype())) {
    return in_f32(x, [&](const Tensor& t) { return var(t, axes, options); });
  }
  const AxisMask mask = axis_mask("var", x.shape(), axes);
  const std::int64_t n = reduced_count(x.shape(), mask);
  require(n > options.correction,
          "var: expected more than {} elements, the correction; got {} of shape {}",
          options.correction, n, x.shape());
  std::vector<double> v = squares("var", kernels::Centre::mean, x, mask);
  for (double& s : v) s /= static_cast<double>(n - options.correction);
  Tensor y = Tensor::from(reduced_shape(x.shape(), mask, options.keep), v, x.dtype());
  record(var_op, y, {x}, {x}, VarAttrs{mask, options.correction});
  return y;
}

Tensor deviation(const Tensor& x, const Axes& axes, VarOptions options) {
  const AxisMask mask = axis_mask("deviation", x.shape(), axes);
  const std::int64_t n = reduced_count(x.shape(), mask);
  require(n > options.correction,
          "deviation: expected more than {} elements, the correction; got {} of shape {}",
          options.correction, n, x.shape());
  return norm(sub(x, mean(x, axes, Keep::yes)), axes, options.keep) /
         std::sqrt(static_cast<double>(n - options.correction));
}

// dx = x / y * dy, and 0 where y is 0: there x is 0, and y is replaced by 1. In this order, since
// dy / y leaves the range of f32 where dy is of the order of 1 / y (as that of a division by y is).
const OpInfo norm_op{
    "norm", [](BackwardContext& ctx) {
      if (!ctx.needs(0)) return;
      const AxisMask mask = ctx.attrs<ReduceAttrs>().mask;
      const Tensor y = kept(ctx, ctx.saved(1), mask);
      const Tensor safe = where(eq(y.detach(), 0.0), Tensor::scalar(1.0, y.dtype()), y);
      ctx.set_grad(0, mul(div(ctx.saved(0), safe), kept(ctx, ctx.grad_output(), mask)));
    }};

Tensor norm(const Tensor& x, const Axes& axes, Keep keep) {
  if (is_half(x.dtype())) {
    return in_f32(x, [&](const Tensor& t) { return norm(t, axes, keep); });
  }
  const AxisMask mask = axis_mask("norm", x.shape(), axes);
  std::vector<double> v = squares("norm", kernels::Centre::zero, x, mask);
  for (double& s : v) s = std::sqrt(s);
  Tensor y = Tensor::from(reduced_shape(x.shape(), mask, keep), v, x.dtype());
  record(norm_op, y, {x}, {x, y}, ReduceAttrs{mask});
  return y;
}

// Over the last axis of (outer, n): dx = dy * softmax(x).
const OpInfo logsumexp_op{
    "logsumexp", [](BackwardContext& ctx) {
      if (!ctx.needs(0)) return;
      const Tensor dy = reshape(ctx.grad_output(), {ctx.input_shape(0)[0], 1});
      ctx.set_grad(0, mul(softmax(ctx.saved(0), 1), dy));
    }};

Tensor logsumexp(const Tensor& x, const Axes& axes, Keep keep) {
  if (is_half(x.dtype())) {
    return in_f32(x, [&](const Tensor& t) { return logsumexp(t, axes, keep); });
  }
  const AxisMask mask = axis_mask("logsumexp", x.shape(), axes);
  Arranged a = arrange(x, mask);
  if (a.split.inner != 1) {
    a.x = permute(reshape(a.x, {a.split.outer, a.split.n, a.split.inner}), {0, 2, 1});
  }
  const std::int64_t rows = a.split.outer * a.split.inner;
  const Tensor matrix = reshape(a.x, {rows, a.split.n});
  Tensor y = Tensor::empty({rows}, x.dtype());
  dispatch_compute(x.dtype(), "logsumexp", [&]<class T>() {
    kernels::log_sum_exp(matrix.data<T>(), rows, a.split.n, y.mutable_data<T>());
  });
  record(logsumexp_op, y, {matrix}, {matrix});
  return reshape(y, reduced_shape(x.shape(), mask, keep));
}

}  // namespace norma
