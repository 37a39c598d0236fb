#include "core/ops/rope.h"

#include <cmath>

#include "core/kernels/rope.h"
#include "core/ops/cast.h"

namespace norma {

extern const OpInfo rope_op;

namespace {

using kernels::RopeShape;

Tensor rotate(const Tensor& x, const RopeShape& s) {
  Tensor y = Tensor::empty(x.shape(), x.dtype());
  dispatch_compute(x.dtype(), "rope",
                   [&]<class T>() { kernels::rope(s, x.data<T>(), y.mutable_data<T>()); });
  record(rope_op, y, {x}, {}, s);
  return y;
}

void rope_backward(BackwardContext& ctx) {
  if (!ctx.needs(0)) return;
  RopeShape s = ctx.attrs<RopeShape>();
  s.inverse = !s.inverse;
  ctx.set_grad(0, rotate(ctx.grad_output(), s));
}

}  // namespace

const OpInfo rope_op{"rope", rope_backward};

Tensor rope(const Tensor& x, RopeOptions options) {
  require(x.defined() && x.shape().rank() == 4 && is_floating(x.dtype()),
          "rope: expected a floating x (B, T, H, D); got {}", x);
  require(x.shape()[3] % 2 == 0, "rope: the width of a head must be even; got {} in x {}",
          x.shape()[3], x.shape());
  require(options.base > 0 && std::isfinite(options.base), "rope: base must be above 0; got {}",
          options.base);
  if (is_half(x.dtype())) return to(rope(to(x, DType::f32), options), x.dtype());
  RopeShape s;
  s.batch = x.shape()[0];
  s.length = x.shape()[1];
  s.heads = x.shape()[2];
  s.width = x.shape()[3];
  s.base = options.base;
  s.offset = options.offset;
  s.pairs = options.layout == RopeLayout::half ? kernels::RopePairs::half
                                               : kernels::RopePairs::interleaved;
  return rotate(x, s);
}

}  // namespace norma
