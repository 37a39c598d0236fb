#include "core/ops/dropout.h"

#include "core/kernels/dropout.h"
#include "core/ops/cast.h"

namespace norma {
namespace {

struct Attrs {
  double p;
  RandomKey key;
};

}  // namespace

extern const OpInfo dropout_op;
const OpInfo dropout_op{"dropout", [](BackwardContext& ctx) {
                          if (!ctx.needs(0)) return;
                          const auto& attrs = ctx.attrs<Attrs>();
                          ctx.set_grad(0, dropout(ctx.grad_output(), attrs.p, attrs.key));
                        }};

Tensor dropout(const Tensor& x, double p, RandomKey key) {
  require(p >= 0.0 && p <= 1.0, "dropout: p must lie within [0, 1]; got {}", p);
  if (p == 0.0) return x;
  if (is_half(x.dtype())) return to(dropout(to(x, DType::f32), p, key), x.dtype());
  Tensor y = Tensor::empty(x.shape(), x.dtype());
  dispatch_compute(x.dtype(), "dropout", [&]<class T>() {
    if (p == 1.0) {
      y.fill_(0.0);
    } else {
      kernels::dropout(key, p, x.data<T>(), y.mutable_data<T>(), x.numel());
    }
  });
  record(dropout_op, y, {x}, {}, Attrs{p, key});
  return y;
}

}  // namespace norma
