#include "core/ops/broadcast.h"

#include "core/autograd.h"
#include "core/kernels/pointwise.h"
#include "core/ops/cast.h"

namespace norma {
namespace {

// Sums x over one run of axes after the other, the longest part first: (outer, middle, inner) with
// `middle` the axes in which `shape`, aligned at the last axis, has size 1.
template <class T>
Tensor sum_runs(Tensor x, const Shape& shape) {
  const int rank = x.rank();
  const int lead = rank - shape.rank();
  Shape left = x.shape();
  const auto reduced = [&](int axis) {
    return left[axis] != 1 && (axis < lead || shape[axis - lead] == 1);
  };
  for (int last = rank - 1; last >= 0; --last) {
    if (!reduced(last)) continue;
    int first = last;
    while (first > 0 && (reduced(first - 1) || left[first - 1] == 1)) --first;
    const std::int64_t outer = left.numel(0, first);
    const std::int64_t middle = left.numel(first, last + 1);
    const std::int64_t inner = left.numel(last + 1, rank);
    for (int axis = first; axis <= last; ++axis) left.set(axis, 1);
    Tensor y = Tensor::empty(left, x.dtype());
    kernels::sum_middle(x.data<T>(), outer, middle, inner, y.mutable_data<T>());
    x = y;
    last = first;
  }
  return x;
}

}  // namespace

extern const OpInfo broadcast_to_op;
const OpInfo broadcast_to_op{"broadcast_to", [](BackwardContext& ctx) {
                               if (ctx.needs(0))
                                 ctx.set_grad(0, sum_to(ctx.grad_output(), ctx.input_shape(0)));
                             }};

extern const OpInfo sum_to_op;
const OpInfo sum_to_op{"sum_to", [](BackwardContext& ctx) {
                         if (ctx.needs(0))
                           ctx.set_grad(0, broadcast_to(ctx.grad_output(), ctx.input_shape(0)));
                       }};

Tensor broadcast_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  require(broadcast_shapes("broadcast_to", x.shape(), shape) == shape,
          "broadcast_to: expected axes of size 1 where the sizes differ; got {} for {}", x.shape(),
          shape);
  Tensor y = Tensor::empty(shape, x.dtype());
  const kernels::BroadcastPlan plan = kernels::broadcast_plan(shape, {&x.shape()});
  dispatch_all(x.dtype(),
               [&]<class T>() { kernels::broadcast_copy(plan, x.data<T>(), y.mutable_data<T>()); });
  if (is_floating(x.dtype())) record(broadcast_to_op, y, {x}, {});
  return y;
}

Tensor sum_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  require(broadcast_shapes("sum_to", x.shape(), shape) == x.shape(),
          "sum_to: expected a shape that broadcasts to {}; got {}", x.shape(), shape);
  if (is_half(x.dtype())) return to(sum_to(to(x, DType::f32), shape), x.dtype());
  const Tensor sums = dispatch_compute(x.dtype(), "sum_to",
                                       [&]<class T>() { return sum_runs<T>(x.detach(), shape); });
  Tensor y = Tensor::view(sums.storage(), sums.offset_bytes(), shape, x.dtype());
  record(sum_to_op, y, {x}, {});
  return y;
}

}  // namespace norma
