#include "core/ops/softmax.h"

#include <limits>

#include "core/kernels/softmax.h"
#include "core/ops/arithmetic.h"
#include "core/ops/cast.h"
#include "core/ops/compare.h"
#include "core/ops/movement.h"
#include "core/ops/reduce.h"

namespace norma {
namespace {

using kernels::SoftmaxForm;

// Note [Softmax saves its output alone]. Both gradients are functions of the output, and so is
// their own gradient: written with ops they can be differentiated to any order, without keeping x
// alive. Where no graph is wanted a kernel does the same in one pass.
void kernel_backward(BackwardContext& ctx, SoftmaxForm form) {
  const Tensor y = ctx.saved(0);
  const Tensor& dy = ctx.grad_output();
  Destination dx = ctx.destination(0);
  const std::int64_t cols = y.size(-1);
  const std::int64_t rows = cols == 0 ? 0 : y.numel() / cols;
  dispatch_compute(y.dtype(), "softmax", [&]<class T>() {
    kernels::softmax_backward(form, y.data<T>(), dy.data<T>(), rows, cols, dx.accumulate,
                              dx.tensor.mutable_data<T>());
  });
}

Tensor apply(const OpInfo& op, SoftmaxForm form, const Tensor& x, int axis) {
  if (is_half(x.dtype())) return to(apply(op, form, to(x, DType::f32), axis), x.dtype());
  const int a = checked_axis(op.name, x.shape(), axis);
  if (a != x.rank() - 1) return transpose(apply(op, form, transpose(x, a, -1), -1), a, -1);
  Tensor y = Tensor::empty(x.shape(), x.dtype());
  const std::int64_t cols = x.size(a);
  const std::int64_t rows = cols == 0 ? 0 : x.numel() / cols;
  dispatch_compute(x.dtype(), op.name, [&]<class T>() {
    kernels::softmax(form, x.data<T>(), rows, cols, y.mutable_data<T>());
  });
  record(op, y, {x}, {y});
  return y;
}

}  // namespace

extern const OpInfo softmax_op, log_softmax_op;

// dx = y * (dy - sum(y * dy)).
const OpInfo softmax_op{"softmax", [](BackwardContext& ctx) {
                          if (!ctx.needs(0)) return;
                          if (!ctx.create_graph()) return kernel_backward(ctx, SoftmaxForm::plain);
                          const Tensor y = ctx.saved(0);
                          const Tensor& dy = ctx.grad_output();
                          const Tensor dot = sum(mul(y, dy), {-1}, Keep::yes);
                          ctx.set_grad(0, mul(y, sub(dy, dot)));
                        }};

// dx = dy - exp(y) * sum(dy), where exp(y) = softmax(y); 0 for rows that are -inf throughout.
const OpInfo log_softmax_op{"log_softmax", [](BackwardContext& ctx) {
                              if (!ctx.needs(0)) return;
                              if (!ctx.create_graph())
                                return kernel_backward(ctx, SoftmaxForm::logarithm);
                              const Tensor y = ctx.saved(0);
                              if (y.numel() == 0)
                                return ctx.set_grad(0, Tensor::zeros(y.shape(), y.dtype()));
                              const Tensor& dy = ctx.grad_output();
                              const Tensor dx = sub(dy, mul(softmax(y), sum(dy, {-1}, Keep::yes)));
                              const Tensor masked = eq(max(y.detach(), {-1}, Keep::yes),
                                                       -std::numeric_limits<double>::infinity());
                              ctx.set_grad(0, where(masked, Tensor::scalar(0.0, y.dtype()), dx));
                            }};

Tensor softmax(const Tensor& x, int axis) { return apply(softmax_op, SoftmaxForm::plain, x, axis); }

Tensor log_softmax(const Tensor& x, int axis) {
  return apply(log_softmax_op, SoftmaxForm::logarithm, x, axis);
}

}  // namespace norma
