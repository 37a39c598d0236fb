#include "core/ops/losses.h"

#include "core/kernels/losses.h"
#include "core/ops/arithmetic.h"
#include "core/ops/cast.h"
#include "core/ops/movement.h"
#include "core/ops/reduce.h"

namespace norma {
namespace {

using kernels::Loss;

struct Attrs {
  Loss loss;
  double delta;
};

void backward(BackwardContext& ctx) {
  if (!ctx.needs(0) && !ctx.needs(1)) return;
  const auto& a = ctx.attrs<Attrs>();
  const Tensor x = ctx.saved(0), t = ctx.saved(1);
  const double scale = ctx.grad_output().item() / static_cast<double>(x.numel());
  // Held until the end: a second destination of the same tensor must not share the first one's
  // memory.
  Destination into[2];
  for (int i : {0, 1}) {
    if (ctx.needs(i)) into[i] = ctx.destination(i);
  }
  dispatch_compute(x.dtype(), "loss", [&]<class T>() {
    kernels::LossGradient<T> gradients[2];
    for (int i : {0, 1}) {
      if (ctx.needs(i))
        gradients[i] = {into[i].tensor.template mutable_data<T>(), into[i].accumulate};
    }
    kernels::loss_backward(a.loss, a.delta, scale, x.data<T>(), t.data<T>(), x.numel(),
                           gradients[0], gradients[1]);
  });
}

Tensor absolute(const Tensor& x) { return maximum(x, neg(x)); }

Tensor mse_composed(std::span<const Tensor> inputs, const void*) {
  const Tensor d = sub(inputs[0], inputs[1]);
  return mean(mul(d, d));
}

Tensor mae_composed(std::span<const Tensor> inputs, const void*) {
  return mean(absolute(sub(inputs[0], inputs[1])));
}

// With c = min(|d|, delta): 0.5 c^2 + delta (|d| - c).
Tensor huber_composed(std::span<const Tensor> inputs, const void* attrs) {
  const double delta = static_cast<const Attrs*>(attrs)->delta;
  const Tensor a = absolute(sub(inputs[0], inputs[1]));
  const Tensor c = minimum(a, Tensor::scalar(delta, a.dtype()));
  return mean(add(mul_scalar(mul(c, c), 0.5), mul_scalar(sub(a, c), delta)));
}

// log(1 + exp(x)) is the logsumexp of 0 and x.
Tensor bce_composed(std::span<const Tensor> inputs, const void*) {
  const Tensor& x = inputs[0];
  const Tensor column = reshape(x, {x.numel(), 1});
  const Tensor pair = concatenate({Tensor::zeros(column.shape(), x.dtype()), column}, 1);
  return mean(sub(reshape(logsumexp(pair, {1}), x.shape()), mul(x, inputs[1])));
}

Tensor apply(const OpInfo& op, Attrs attrs, const Tensor& x, const Tensor& t) {
  require(x.shape() == t.shape() && x.dtype() == t.dtype(),
          "{}: expected targets of {} with the predictions' shape {}; got {} of {}", op.name,
          name_of(x.dtype()), x.shape(), name_of(t.dtype()), t.shape());
  require(x.numel() > 0, "{}: expected at least one element; got shape {}", op.name, x.shape());
  if (is_half(x.dtype())) {
    return to(apply(op, attrs, to(x, DType::f32), to(t, DType::f32)), x.dtype());
  }
  const double total = dispatch_compute(x.dtype(), op.name, [&]<class T>() {
    return kernels::loss_sum(attrs.loss, attrs.delta, x.data<T>(), t.data<T>(), x.numel());
  });
  Tensor y = Tensor::scalar(total / static_cast<double>(x.numel()), x.dtype());
  record(op, y, {x, t}, {x, t}, attrs);
  return y;
}

}  // namespace

extern const OpInfo mse_loss_op, mae_loss_op, huber_loss_op, bce_loss_op;
const OpInfo mse_loss_op{"mse_loss", backward, mse_composed};
const OpInfo mae_loss_op{"mae_loss", backward, mae_composed};
const OpInfo huber_loss_op{"huber_loss", backward, huber_composed};
const OpInfo bce_loss_op{"bce_loss", backward, bce_composed};

Tensor mse_loss(const Tensor& x, const Tensor& t) {
  return apply(mse_loss_op, {Loss::mse, 0}, x, t);
}
Tensor mae_loss(const Tensor& x, const Tensor& t) {
  return apply(mae_loss_op, {Loss::mae, 0}, x, t);
}
Tensor huber_loss(const Tensor& x, const Tensor& t, HuberOptions options) {
  require(options.delta > 0, "huber_loss: expected delta above 0; got {}", options.delta);
  return apply(huber_loss_op, {Loss::huber, options.delta}, x, t);
}
Tensor bce_loss(const Tensor& x, const Tensor& t) {
  return apply(bce_loss_op, {Loss::bce, 0}, x, t);
}

}  // namespace norma
