#include "core/ops/math.h"

#include <numbers>

#include "core/kernels/activations.h"
#include "core/kernels/unary.h"
#include "core/ops/arithmetic.h"
#include "core/ops/broadcast.h"
#include "core/ops/cast.h"
#include "core/ops/compare.h"

namespace norma {
namespace {

using kernels::Unary;

// op(x), recorded as `info` with x or the result saved. A half type is computed in f32.
enum class Saves { nothing, input, output };
Tensor apply(const OpInfo& info, Unary op, const Tensor& x, Saves saves) {
  if (is_half(x.dtype())) return to(apply(info, op, to(x, DType::f32), saves), x.dtype());
  Tensor y = Tensor::empty(x.shape(), x.dtype());
  dispatch_compute(x.dtype(), info.name, [&]<class T>() {
    kernels::unary(op, x.data<T>(), y.mutable_data<T>(), x.numel());
  });
  switch (saves) {
    case Saves::nothing:
      record(info, y, {x}, {});
      break;
    case Saves::input:
      record(info, y, {x}, {x});
      break;
    case Saves::output:
      record(info, y, {x}, {y});
      break;
  }
  return y;
}

// The gradient of tanh or sigmoid from its output, in one pass over memory.
void backward_from_output(BackwardContext& ctx, kernels::Activation a) {
  const Tensor y = ctx.saved(0);
  const Tensor& dy = ctx.grad_output();
  Destination dx = ctx.destination(0);
  dispatch_compute(y.dtype(), "backward", [&]<class T>() {
    kernels::activate_backward(a, 0.0, y.data<T>(), dy.data<T>(), dx.accumulate,
                               dx.tensor.mutable_data<T>(), y.numel());
  });
}

struct PowAttrs {
  double p;
};

}  // namespace

extern const OpInfo exp_op, log_op, sqrt_op, rsqrt_op, tanh_op, erf_op, sigmoid_op, abs_op,
    square_op, sin_op, cos_op, pow_op, pow_tensor_op;

const OpInfo exp_op{"exp", [](BackwardContext& ctx) {
                      if (ctx.needs(0)) ctx.set_grad(0, ctx.grad_output() * ctx.saved(0));
                    }};

const OpInfo log_op{"log", [](BackwardContext& ctx) {
                      if (ctx.needs(0)) ctx.set_grad(0, ctx.grad_output() / ctx.saved(0));
                    }};

// dy / (2 y)
const OpInfo sqrt_op{"sqrt", [](BackwardContext& ctx) {
                       if (!ctx.needs(0)) return;
                       ctx.set_grad(0, mul_scalar(ctx.grad_output(), 0.5) / ctx.saved(0));
                     }};

// -dy y^3 / 2
const OpInfo rsqrt_op{"rsqrt", [](BackwardContext& ctx) {
                        if (!ctx.needs(0)) return;
                        const Tensor y = ctx.saved(0);
                        ctx.set_grad(0, mul_scalar(ctx.grad_output(), -0.5) * (square(y) * y));
                      }};

// dy (1 - y^2)
const OpInfo tanh_op{"tanh", [](BackwardContext& ctx) {
                       if (!ctx.needs(0)) return;
                       if (!ctx.create_graph()) {
                         return backward_from_output(ctx, kernels::Activation::tanh);
                       }
                       ctx.set_grad(0, ctx.grad_output() * (1.0 - square(ctx.saved(0))));
                     }};

// dy y (1 - y)
const OpInfo sigmoid_op{"sigmoid", [](BackwardContext& ctx) {
                          if (!ctx.needs(0)) return;
                          if (!ctx.create_graph()) {
                            return backward_from_output(ctx, kernels::Activation::sigmoid);
                          }
                          const Tensor y = ctx.saved(0);
                          ctx.set_grad(0, ctx.grad_output() * (y * (1.0 - y)));
                        }};

// dy 2 / sqrt(pi) e^(-x^2)
const OpInfo erf_op{
    "erf", [](BackwardContext& ctx) {
      if (!ctx.needs(0)) return;
      const Tensor density = exp(neg(square(ctx.saved(0))));
      ctx.set_grad(0, ctx.grad_output() * mul_scalar(density, 2.0 * std::numbers::inv_sqrtpi));
    }};

const OpInfo abs_op{"abs", [](BackwardContext& ctx) {
                      if (!ctx.needs(0)) return;
                      ctx.set_grad(0, ctx.grad_output() * sign(ctx.saved(0)));
                    }};

const OpInfo square_op{"square", [](BackwardContext& ctx) {
                         if (!ctx.needs(0)) return;
                         ctx.set_grad(0, ctx.grad_output() * mul_scalar(ctx.saved(0), 2.0));
                       }};

const OpInfo sin_op{"sin", [](BackwardContext& ctx) {
                      if (ctx.needs(0)) ctx.set_grad(0, ctx.grad_output() * cos(ctx.saved(0)));
                    }};

const OpInfo cos_op{"cos", [](BackwardContext& ctx) {
                      if (ctx.needs(0)) ctx.set_grad(0, ctx.grad_output() * neg(sin(ctx.saved(0))));
                    }};

const OpInfo pow_op{"pow", [](BackwardContext& ctx) {
                      if (!ctx.needs(0)) return;
                      const double p = ctx.attrs<PowAttrs>().p;
                      const Tensor& dy = ctx.grad_output();
                      if (p == 0.0) {
                        ctx.set_grad(0, Tensor::zeros(dy.shape(), dy.dtype()));
                      } else {
                        ctx.set_grad(0, dy * mul_scalar(pow(ctx.saved(0), p - 1.0), p));
                      }
                    }};

const OpInfo pow_tensor_op{
    "pow_tensor", [](BackwardContext& ctx) {
      const Tensor a = ctx.saved(0);
      const Tensor b = ctx.saved(1);
      const Tensor& dy = ctx.grad_output();
      // At a = b = 0 the exponent is set to 0, so that 0 times infinity becomes 0 times 1.
      if (ctx.needs(0)) {
        const Tensor at_zero = eq(abs(a.detach()) + abs(b.detach()), 0.0);
        const Tensor exponent = where(at_zero, Tensor::scalar(0.0, b.dtype()), b - 1.0);
        ctx.set_grad(0, sum_to(dy * (b * pow(a, exponent)), ctx.input_shape(0)));
      }
      // At a = 0 the logarithm is that of 1, so that 0 times infinity becomes 0 times 0.
      if (ctx.needs(1)) {
        const Tensor base = where(eq(a, 0.0), Tensor::scalar(1.0, a.dtype()), a);
        ctx.set_grad(1, sum_to(dy * (pow(a, b) * log(base)), ctx.input_shape(1)));
      }
    }};

Tensor exp(const Tensor& x) { return apply(exp_op, Unary::exp, x, Saves::output); }
Tensor log(const Tensor& x) { return apply(log_op, Unary::log, x, Saves::input); }
Tensor sqrt(const Tensor& x) { return apply(sqrt_op, Unary::sqrt, x, Saves::output); }
Tensor rsqrt(const Tensor& x) { return apply(rsqrt_op, Unary::rsqrt, x, Saves::output); }
Tensor tanh(const Tensor& x) { return apply(tanh_op, Unary::tanh, x, Saves::output); }
Tensor erf(const Tensor& x) { return apply(erf_op, Unary::erf, x, Saves::input); }
Tensor sigmoid(const Tensor& x) { return apply(sigmoid_op, Unary::sigmoid, x, Saves::output); }
Tensor abs(const Tensor& x) { return apply(abs_op, Unary::abs, x, Saves::input); }
Tensor square(const Tensor& x) { return apply(square_op, Unary::square, x, Saves::input); }
Tensor sin(const Tensor& x) { return apply(sin_op, Unary::sin, x, Saves::input); }
Tensor cos(const Tensor& x) { return apply(cos_op, Unary::cos, x, Saves::input); }

Tensor sign(const Tensor& x) {
  static const OpInfo unrecorded{"sign", nullptr};
  return apply(unrecorded, Unary::sign, x.detach(), Saves::nothing);
}

Tensor pow(const Tensor& x, double p) {
  if (is_half(x.dtype())) return to(pow(to(x, DType::f32), p), x.dtype());
  Tensor y = Tensor::empty(x.shape(), x.dtype());
  dispatch_compute(x.dtype(), "pow", [&]<class T>() {
    T* out = y.mutable_data<T>();
    if (p == 2.0) {
      kernels::unary(Unary::square, x.data<T>(), out, x.numel());
    } else if (p == 1.0) {
      kernels::copy(x.data<T>(), out, x.numel());
    } else if (p == 0.0) {
      kernels::fill(T{1}, out, x.numel());
    } else {
      kernels::power(x.data<T>(), p, out, x.numel());
    }
  });
  record(pow_op, y, {x}, {x}, PowAttrs{p});
  return y;
}

Tensor pow(const Tensor& a, const Tensor& b) {
  require(a.dtype() == b.dtype(),
          "pow: expected operands of one type; got {} and {}; convert one with to(x, dtype)",
          name_of(a.dtype()), name_of(b.dtype()));
  if (is_half(a.dtype())) return to(pow(to(a, DType::f32), to(b, DType::f32)), a.dtype());
  const Shape shape = broadcast_shapes("pow", a.shape(), b.shape());
  Tensor y = Tensor::empty(shape, a.dtype());
  dispatch_compute(a.dtype(), "pow", [&]<class T>() {
    kernels::power(kernels::broadcast_plan(shape, {&a.shape(), &b.shape()}), a.data<T>(),
                   b.data<T>(), y.mutable_data<T>());
  });
  record(pow_tensor_op, y, {a, b}, {a, b});
  return y;
}

}  // namespace norma
