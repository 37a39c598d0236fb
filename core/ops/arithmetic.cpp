#include "core/ops/arithmetic.h"

#include "core/autograd.h"
#include "core/kernels/convert.h"
#include "core/kernels/pointwise.h"
#include "core/ops/broadcast.h"
#include "core/ops/cast.h"

namespace norma {
namespace {

using kernels::Binary;

struct ScalarAttrs {
  double s;
};

void check_types(const char* name, const Tensor& a, const Tensor& b) {
  require(a.dtype() == b.dtype(),
          "{}: expected operands of one type; got {} and {}; convert one with to(x, dtype)", name,
          name_of(a.dtype()), name_of(b.dtype()));
}

// op(a, b) without a record, for f32 and f64.
Tensor compute(const char* name, Binary op, const Tensor& a, const Tensor& b) {
  check_types(name, a, b);
  const Shape shape = broadcast_shapes(name, a.shape(), b.shape());
  return dispatch_compute(a.dtype(), name, [&]<class T>() {
    Tensor y = Tensor::empty(shape, a.dtype());
    kernels::binary(op, kernels::broadcast_plan(shape, {&a.shape(), &b.shape()}), a.data<T>(),
                    b.data<T>(), y.mutable_data<T>());
    return y;
  });
}

// op(x, s) likewise. The scalar is rounded to x's type.
Tensor compute_scalar(const char* name, Binary op, const Tensor& x, double s) {
  return dispatch_compute(x.dtype(), name, [&]<class T>() {
    Tensor y = Tensor::empty(x.shape(), x.dtype());
    const T value = static_cast<T>(s);
    const Shape scalar;
    kernels::binary(op, kernels::broadcast_plan(x.shape(), {&x.shape(), &scalar}), x.data<T>(),
                    &value, y.mutable_data<T>());
    return y;
  });
}

bool both_half(const Tensor& a, const Tensor& b) {
  return is_half(a.dtype()) && a.dtype() == b.dtype();
}

// Computes a half type in f32 and rounds once. The casts are recorded, so gradients pass.
Tensor in_f32(Tensor (*f)(const Tensor&, const Tensor&), const Tensor& a, const Tensor& b) {
  return to(f(to(a, DType::f32), to(b, DType::f32)), a.dtype());
}
Tensor in_f32(Tensor (*f)(const Tensor&, double), const Tensor& x, double s) {
  return to(f(to(x, DType::f32), s), x.dtype());
}

// The part of the gradient of max(a, b) that belongs to a: a constant, so nothing is recorded.
Tensor share_max(const Tensor& a, const Tensor& b) {
  return compute("maximum", Binary::share_max, a, b);
}

// Gives `grad`, summed to the shape of the input.
void set_summed(BackwardContext& ctx, int input, const Tensor& grad) {
  ctx.set_grad(input, sum_to(grad, ctx.input_shape(input)));
}

}  // namespace

extern const OpInfo add_op, sub_op, mul_op, div_op, neg_op, add_scalar_op, mul_scalar_op,
    maximum_op, minimum_op;

const OpInfo add_op{"add", [](BackwardContext& ctx) {
                      for (int i : {0, 1}) {
                        if (ctx.needs(i)) set_summed(ctx, i, ctx.grad_output());
                      }
                    }};

const OpInfo sub_op{"sub", [](BackwardContext& ctx) {
                      if (ctx.needs(0)) set_summed(ctx, 0, ctx.grad_output());
                      if (ctx.needs(1)) {
                        ctx.set_grad(1, neg(sum_to(ctx.grad_output(), ctx.input_shape(1))));
                      }
                    }};

const OpInfo mul_op{"mul", [](BackwardContext& ctx) {
                      for (int i : {0, 1}) {
                        if (ctx.needs(i)) {
                          set_summed(ctx, i, mul(ctx.grad_output(), ctx.saved(1 - i)));
                        }
                      }
                    }};

// y = a / b: da = dy / b, db = -dy a / b^2 = -(dy / b) y.
const OpInfo div_op{"div", [](BackwardContext& ctx) {
                      const Tensor da = div(ctx.grad_output(), ctx.saved(0));
                      if (ctx.needs(0)) set_summed(ctx, 0, da);
                      if (ctx.needs(1)) set_summed(ctx, 1, neg(mul(da, ctx.saved(1))));
                    }};

const OpInfo neg_op{"neg", [](BackwardContext& ctx) {
                      if (ctx.needs(0)) ctx.set_grad(0, neg(ctx.grad_output()));
                    }};

const OpInfo add_scalar_op{"add_scalar", [](BackwardContext& ctx) {
                             if (ctx.needs(0)) ctx.set_grad(0, ctx.grad_output());
                           }};

const OpInfo mul_scalar_op{"mul_scalar", [](BackwardContext& ctx) {
                             if (!ctx.needs(0)) return;
                             ctx.set_grad(
                                 0, mul_scalar(ctx.grad_output(), ctx.attrs<ScalarAttrs>().s));
                           }};

const OpInfo maximum_op{"maximum", [](BackwardContext& ctx) {
                          for (int i : {0, 1}) {
                            if (!ctx.needs(i)) continue;
                            const Tensor share =
                                share_max(ctx.saved(i).detach(), ctx.saved(1 - i).detach());
                            set_summed(ctx, i, mul(ctx.grad_output(), share));
                          }
                        }};

const OpInfo minimum_op{"minimum", [](BackwardContext& ctx) {
                          for (int i : {0, 1}) {
                            if (!ctx.needs(i)) continue;
                            const Tensor share =
                                share_max(ctx.saved(1 - i).detach(), ctx.saved(i).detach());
                            set_summed(ctx, i, mul(ctx.grad_output(), share));
                          }
                        }};

Tensor add(const Tensor& a, const Tensor& b) {
  if (both_half(a, b) && a.shape() == b.shape()) {
    Tensor y = Tensor::empty(a.shape(), a.dtype());
    kernels::add_halves(a.dtype(), a.raw(), b.raw(), y.mutable_raw(), y.numel());
    record(add_op, y, {a, b}, {});
    return y;
  }
  if (both_half(a, b)) return in_f32(add, a, b);
  Tensor y = compute("add", Binary::add, a, b);
  record(add_op, y, {a, b}, {});
  return y;
}

Tensor sub(const Tensor& a, const Tensor& b) {
  if (both_half(a, b)) return in_f32(sub, a, b);
  Tensor y = compute("sub", Binary::sub, a, b);
  record(sub_op, y, {a, b}, {});
  return y;
}

Tensor mul(const Tensor& a, const Tensor& b) {
  if (both_half(a, b)) return in_f32(mul, a, b);
  Tensor y = compute("mul", Binary::mul, a, b);
  record(mul_op, y, {a, b}, {a, b});
  return y;
}

Tensor div(const Tensor& a, const Tensor& b) {
  if (both_half(a, b)) return in_f32(div, a, b);
  Tensor y = compute("div", Binary::div, a, b);
  record(div_op, y, {a, b}, {b, y});
  return y;
}

Tensor neg(const Tensor& x) {
  if (is_half(x.dtype())) return to(neg(to(x, DType::f32)), x.dtype());
  Tensor y = compute_scalar("neg", Binary::mul, x, -1.0);
  record(neg_op, y, {x}, {});
  return y;
}

Tensor add_scalar(const Tensor& x, double s) {
  if (is_half(x.dtype())) return in_f32(add_scalar, x, s);
  Tensor y = compute_scalar("add_scalar", Binary::add, x, s);
  record(add_scalar_op, y, {x}, {});
  return y;
}

Tensor mul_scalar(const Tensor& x, double s) {
  if (is_half(x.dtype())) return in_f32(mul_scalar, x, s);
  Tensor y = compute_scalar("mul_scalar", Binary::mul, x, s);
  record(mul_scalar_op, y, {x}, {}, ScalarAttrs{s});
  return y;
}

Tensor maximum(const Tensor& a, const Tensor& b) {
  if (both_half(a, b)) return in_f32(maximum, a, b);
  Tensor y = compute("maximum", Binary::maximum, a, b);
  record(maximum_op, y, {a, b}, {a, b});
  return y;
}

Tensor minimum(const Tensor& a, const Tensor& b) {
  if (both_half(a, b)) return in_f32(minimum, a, b);
  Tensor y = compute("minimum", Binary::minimum, a, b);
  record(minimum_op, y, {a, b}, {a, b});
  return y;
}

}  // namespace norma
