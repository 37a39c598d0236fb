#include "core/ops/activations.h"

#include <cmath>
#include <numbers>

#include "core/kernels/activations.h"
#include "core/ops/arithmetic.h"
#include "core/ops/cast.h"
#include "core/ops/compare.h"
#include "core/ops/math.h"

namespace norma {
namespace {

using kernels::Activation;

struct Attrs {
  Activation kind;
  double parameter;  // slope or alpha
};

Tensor forward(const char* name, const Attrs& attrs, const Tensor& x) {
  Tensor y = Tensor::empty(x.shape(), x.dtype());
  dispatch_compute(x.dtype(), name, [&]<class T>() {
    kernels::activate(attrs.kind, attrs.parameter, x.data<T>(), y.mutable_data<T>(), x.numel());
  });
  return y;
}

// The kernel's gradient from what the op saved first.
void backward_kernel(BackwardContext& ctx) {
  if (!ctx.needs(0)) return;
  const auto& attrs = ctx.attrs<Attrs>();
  const Tensor s = ctx.saved(0);
  const Tensor& dy = ctx.grad_output();
  Destination dx = ctx.destination(0);
  dispatch_compute(s.dtype(), "backward", [&]<class T>() {
    kernels::activate_backward(attrs.kind, attrs.parameter, s.data<T>(), dy.data<T>(),
                               dx.accumulate, dx.tensor.mutable_data<T>(), s.numel());
  });
}

void recompute_kernel(BackwardContext& ctx) {
  ctx.set_recomputed(forward("backward", ctx.attrs<Attrs>(), ctx.saved(0)));
}

Tensor gated_forward(const char* name, Activation kind, const Tensor& gate, const Tensor& up) {
  Tensor y = Tensor::empty(gate.shape(), gate.dtype());
  dispatch_compute(gate.dtype(), name, [&]<class T>() {
    kernels::gate(kind, gate.data<T>(), up.data<T>(), y.mutable_data<T>(), gate.numel());
  });
  return y;
}

void gated_backward_kernel(BackwardContext& ctx) {
  const Activation kind = ctx.attrs<Attrs>().kind;
  const Tensor gate = ctx.saved(0);
  const Tensor up = ctx.saved(1);
  const Tensor& dy = ctx.grad_output();
  dispatch_compute(gate.dtype(), "backward", [&]<class T>() {
    Destination to[2];
    kernels::Output<T> out[2];
    for (int i : {0, 1}) {
      if (!ctx.needs(i)) continue;
      to[i] = ctx.destination(i);
      out[i] = {to[i].tensor.mutable_data<T>(), to[i].accumulate};
    }
    kernels::gate_backward(kind, gate.data<T>(), up.data<T>(), dy.data<T>(), out[0], out[1],
                           gate.numel());
  });
}

void gated_recompute(BackwardContext& ctx) {
  ctx.set_recomputed(
      gated_forward("backward", ctx.attrs<Attrs>().kind, ctx.saved(0), ctx.saved(1)));
}

// The gelu of `kind` from primitives.
Tensor composed_gelu(const Tensor& x, Activation kind) {
  if (kind == Activation::gelu) {
    return x * add_scalar(erf(x * (1.0 / std::numbers::sqrt2)), 1.0) * 0.5;
  }
  const Tensor z = (x + pow(x, 3.0) * 0.044715) * std::sqrt(2.0 / std::numbers::pi);
  return x * add_scalar(tanh(z), 1.0) * 0.5;
}

using Inputs = std::span<const Tensor>;
Activation kind_of(const void* attrs) { return static_cast<const Attrs*>(attrs)->kind; }
double parameter_of(const void* attrs) { return static_cast<const Attrs*>(attrs)->parameter; }

}  // namespace

extern const OpInfo relu_op, leaky_relu_op, gelu_op, silu_op, softplus_op, elu_op, swiglu_op,
    geglu_op, reglu_op;

// relu and leaky_relu are primitives: their slope is constant on either side.
const OpInfo relu_op{"relu", [](BackwardContext& ctx) {
                       if (!ctx.create_graph()) return backward_kernel(ctx);
                       if (!ctx.needs(0)) return;
                       const Tensor& dy = ctx.grad_output();
                       ctx.set_grad(
                           0, where(le(ctx.saved(0), 0.0), Tensor::scalar(0.0, dy.dtype()), dy));
                     }};

const OpInfo leaky_relu_op{"leaky_relu", [](BackwardContext& ctx) {
                             if (!ctx.create_graph()) return backward_kernel(ctx);
                             if (!ctx.needs(0)) return;
                             const Tensor& dy = ctx.grad_output();
                             const double slope = ctx.attrs<Attrs>().parameter;
                             ctx.set_grad(0, where(gt(ctx.saved(0), 0.0), dy, dy * slope));
                           }};

const OpInfo gelu_op{
    "gelu", backward_kernel,
    [](Inputs x, const void* attrs) { return composed_gelu(x[0], kind_of(attrs)); },
    recompute_kernel};

const OpInfo silu_op{"silu", backward_kernel,
                     [](Inputs x, const void*) { return x[0] * sigmoid(x[0]); }, recompute_kernel};

const OpInfo softplus_op{"softplus", backward_kernel,
                         [](Inputs x, const void*) {
                           const Tensor zero = Tensor::scalar(0.0, x[0].dtype());
                           return maximum(x[0], zero) + log(add_scalar(exp(neg(abs(x[0]))), 1.0));
                         },
                         recompute_kernel};

const OpInfo elu_op{"elu", backward_kernel,
                    [](Inputs x, const void* attrs) {
                      const Tensor zero = Tensor::scalar(0.0, x[0].dtype());
                      const Tensor positive = gt(x[0], 0.0);
                      const Tensor below = where(positive, zero, x[0]);
                      return where(positive, x[0],
                                   add_scalar(exp(below), -1.0) * parameter_of(attrs));
                    },
                    recompute_kernel};

const OpInfo swiglu_op{"swiglu", gated_backward_kernel,
                       [](Inputs x, const void*) { return x[0] * sigmoid(x[0]) * x[1]; },
                       gated_recompute};

const OpInfo geglu_op{
    "geglu", gated_backward_kernel,
    [](Inputs x, const void* attrs) { return composed_gelu(x[0], kind_of(attrs)) * x[1]; },
    gated_recompute};

const OpInfo reglu_op{"reglu", gated_backward_kernel,
                      [](Inputs x, const void*) { return relu(x[0]) * x[1]; }, gated_recompute};

namespace {

Tensor fused(const OpInfo& info, const Attrs& attrs, const Tensor& x) {
  if (is_half(x.dtype())) return to(fused(info, attrs, to(x, DType::f32)), x.dtype());
  Tensor y = forward(info.name, attrs, x);
  record(info, y, {x}, {x}, attrs);
  allow_recompute(y);
  return y;
}

Tensor gated(const OpInfo& info, Activation kind, const Tensor& gate, const Tensor& up) {
  require(gate.shape() == up.shape(), "{}: gate and up must have one shape; got {} and {}",
          info.name, gate.shape(), up.shape());
  require(gate.dtype() == up.dtype(), "{}: gate and up must have one type; got {} and {}",
          info.name, name_of(gate.dtype()), name_of(up.dtype()));
  if (is_half(gate.dtype())) {
    return to(gated(info, kind, to(gate, DType::f32), to(up, DType::f32)), gate.dtype());
  }
  Tensor y = gated_forward(info.name, kind, gate, up);
  record(info, y, {gate, up}, {gate, up}, Attrs{kind, 0.0});
  allow_recompute(y);
  return y;
}

Activation gelu_kind(GeluForm form) {
  return form == GeluForm::erf ? Activation::gelu : Activation::gelu_tanh;
}

}  // namespace

Tensor relu(const Tensor& x) {
  if (is_half(x.dtype())) return to(relu(to(x, DType::f32)), x.dtype());
  const Attrs attrs{Activation::relu, 0.0};
  Tensor y = forward("relu", attrs, x);
  record(relu_op, y, {x}, {y}, attrs);
  return y;
}

Tensor leaky_relu(const Tensor& x, double slope) {
  if (is_half(x.dtype())) return to(leaky_relu(to(x, DType::f32), slope), x.dtype());
  const Attrs attrs{Activation::leaky_relu, slope};
  Tensor y = forward("leaky_relu", attrs, x);
  record(leaky_relu_op, y, {x}, {slope > 0.0 ? y : x}, attrs);
  return y;
}

Tensor gelu(const Tensor& x, GeluForm form) { return fused(gelu_op, {gelu_kind(form), 0.0}, x); }
Tensor silu(const Tensor& x) { return fused(silu_op, {Activation::silu, 0.0}, x); }
Tensor softplus(const Tensor& x) { return fused(softplus_op, {Activation::softplus, 0.0}, x); }
Tensor elu(const Tensor& x, double alpha) { return fused(elu_op, {Activation::elu, alpha}, x); }

Tensor swiglu(const Tensor& gate, const Tensor& up) {
  return gated(swiglu_op, Activation::silu, gate, up);
}
Tensor geglu(const Tensor& gate, const Tensor& up, GeluForm form) {
  return gated(geglu_op, gelu_kind(form), gate, up);
}
Tensor reglu(const Tensor& gate, const Tensor& up) {
  return gated(reglu_op, Activation::relu, gate, up);
}

}  // namespace norma
