#include "core/ops/cast.h"

#include "core/autograd.h"
#include "core/kernels/convert.h"

namespace norma {

namespace {

// A result that is computed again (Note [Recomputed]) is so in the half type too.
bool can_recompute(const Tensor& x, DType dtype) {
  return x.dtype() == DType::f32 && is_half(dtype) && x.impl()->node &&
         x.impl()->node->recomputable;
}

}  // namespace

extern const OpInfo cast_op;
const OpInfo cast_op{
    "cast",
    [](BackwardContext& ctx) {
      if (ctx.needs(0)) ctx.set_grad(0, to(ctx.grad_output(), ctx.input_dtype(0)));
    },
    nullptr,
    [](BackwardContext& ctx) { ctx.set_recomputed(to(ctx.saved(0), ctx.attrs<DType>())); }};

Tensor to(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  Tensor y = Tensor::empty(x.shape(), dtype);
  kernels::convert(x.dtype(), x.raw(), dtype, y.mutable_raw(), x.numel());
  if (is_half(x.dtype()) && dtype == DType::f32) {
    y.impl()->narrow = x;
    y.impl()->narrow_version = y.version();
  }
  if (can_recompute(x, dtype)) {
    record(cast_op, y, {x}, {x}, dtype);
    allow_recompute(y);
  } else if (is_floating(x.dtype()) && is_floating(dtype)) {
    record(cast_op, y, {x}, {});
  }
  return y;
}

}  // namespace norma
