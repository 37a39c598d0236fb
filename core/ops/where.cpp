#include "core/autograd.h"
#include "core/kernels/compare.h"
#include "core/ops/arithmetic.h"
#include "core/ops/broadcast.h"
#include "core/ops/cast.h"

namespace norma {

extern const OpInfo where_op;
const OpInfo where_op{"where", [](BackwardContext& ctx) {
                        const Tensor condition = ctx.saved(0);
                        const Tensor& dy = ctx.grad_output();
                        const Tensor zero = Tensor::scalar(0.0, dy.dtype());
                        if (ctx.needs(0))
                          ctx.set_grad(0, sum_to(where(condition, dy, zero), ctx.input_shape(0)));
                        if (ctx.needs(1))
                          ctx.set_grad(1, sum_to(where(condition, zero, dy), ctx.input_shape(1)));
                      }};

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  require(condition.dtype() == DType::u8,
          "where: expected a condition of type u8; got {}; use a comparison",
          name_of(condition.dtype()));
  require(a.dtype() == b.dtype() && is_floating(a.dtype()),
          "where: expected operands of one floating type; got {} and {}; convert one with to(x, "
          "dtype)",
          name_of(a.dtype()), name_of(b.dtype()));
  if (is_half(a.dtype())) {
    return to(where(condition, to(a, DType::f32), to(b, DType::f32)), a.dtype());
  }
  const Shape shape =
      broadcast_shapes("where", broadcast_shapes("where", condition.shape(), a.shape()), b.shape());
  Tensor y = Tensor::empty(shape, a.dtype());
  const kernels::BroadcastPlan plan =
      kernels::broadcast_plan(shape, {&condition.shape(), &a.shape(), &b.shape()});
  dispatch_compute(a.dtype(), "where", [&]<class T>() {
    kernels::select(plan, condition.data<std::uint8_t>(), a.data<T>(), b.data<T>(),
                    y.mutable_data<T>());
  });
  record(where_op, y, {a, b}, {condition});
  return y;
}

}  // namespace norma
