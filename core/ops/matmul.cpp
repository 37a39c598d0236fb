#include "core/ops/matmul.h"

#include <vector>

#include "core/autograd.h"
#include "core/kernels/gemm.h"
#include "core/ops/broadcast.h"
#include "core/ops/cast.h"
#include "core/ops/movement.h"

namespace norma {
namespace {

// Offsets of the matrices of an operand with leading axes `own`, for every index of the broadcast
// leading axes `all`.
std::vector<std::int64_t> matrix_offsets(const Shape& all, const Shape& own, std::int64_t size) {
  std::vector<std::int64_t> offsets(static_cast<std::size_t>(all.numel()));
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    std::int64_t rest = static_cast<std::int64_t>(i), step = size, offset = 0;
    for (int axis = all.rank() - 1, j = own.rank() - 1; j >= 0; --axis, --j) {
      if (own[j] != 1) offset += rest % all[axis] * step;
      rest /= all[axis];
      step *= own[j];
    }
    offsets[i] = offset;
  }
  return offsets;
}

// The gradients of op(a) op(b); each is summed over the axes that its operand was repeated along.
void matmul_backward(BackwardContext& ctx) {
  const auto options = ctx.attrs<MatmulOptions>();
  const bool ta = options.transpose_a, tb = options.transpose_b;
  const Tensor a = ctx.saved(0), b = ctx.saved(1);
  const Tensor& dy = ctx.grad_output();
  if (ctx.needs(0)) {
    const Tensor da = ta ? matmul(b, dy, {.transpose_a = tb, .transpose_b = true})
                         : matmul(dy, b, {.transpose_b = !tb});
    ctx.set_grad(0, sum_to(da, a.shape()));
  }
  if (ctx.needs(1)) {
    const Tensor db = tb ? matmul(dy, a, {.transpose_a = true, .transpose_b = ta})
                         : matmul(a, dy, {.transpose_a = !ta});
    ctx.set_grad(1, sum_to(db, b.shape()));
  }
}

}  // namespace

extern const OpInfo matmul_op;
const OpInfo matmul_op{"matmul", matmul_backward};

Tensor matmul(const Tensor& a, const Tensor& b, MatmulOptions options) {
  const bool ta = options.transpose_a, tb = options.transpose_b;
  require(a.rank() >= 2 && b.rank() >= 2,
          "matmul: a and b must have at least two axes; got {} and {}; reshape a vector to (1, n) "
          "or (n, 1)",
          a.shape(), b.shape());
  require(a.dtype() == b.dtype() && is_floating(a.dtype()),
          "matmul: a and b must have one floating type; got {} and {}; convert with to(x, dtype)",
          name_of(a.dtype()), name_of(b.dtype()));
  kernels::Product p{.m = a.size(ta ? -1 : -2),
                     .n = b.size(tb ? -2 : -1),
                     .k = a.size(ta ? -2 : -1),
                     .transpose_a = ta,
                     .transpose_b = tb};
  require(b.size(tb ? -1 : -2) == p.k,
          "matmul: the inner sizes must agree; got {} of a {}{} and {} of b {}{}", p.k, a.shape(),
          ta ? " transposed" : "", b.size(tb ? -1 : -2), b.shape(), tb ? " transposed" : "");
  if (is_half(a.dtype())) {
    return to(matmul(to(a, DType::f32), to(b, DType::f32), options), a.dtype());
  }
  const Shape lead_a = a.shape().sub(0, a.rank() - 2), lead_b = b.shape().sub(0, b.rank() - 2);
  Shape lead = lead_a;
  if (!(lead_a == lead_b)) {
    if (b.rank() == 2 && !ta) {
      // One matrix for all rows: a single product.
      Shape rows = lead;
      rows.push_back(p.m);
      Shape shape = rows;
      shape.push_back(p.n);
      return reshape(matmul(reshape(a, {rows.numel(), p.k}), b, options), shape);
    }
    lead = broadcast_shapes("matmul", lead_a, lead_b);
  }
  Shape shape = lead;
  shape.push_back(p.m);
  shape.push_back(p.n);
  Tensor y = Tensor::empty(shape, a.dtype());
  std::vector<std::int64_t> offsets_a, offsets_b;
  kernels::BatchStep step_a{.stride = p.m * p.k}, step_b{.stride = p.k * p.n};
  if (!(lead_a == lead)) {
    offsets_a = matrix_offsets(lead, lead_a, p.m * p.k);
    step_a.offsets = offsets_a.data();
  }
  if (!(lead_b == lead)) {
    offsets_b = matrix_offsets(lead, lead_b, p.k * p.n);
    step_b.offsets = offsets_b.data();
  }
  dispatch_compute(a.dtype(), "matmul", [&]<class T>() {
    kernels::gemm_batched(lead.numel(), p, T(1), a.data<T>(), step_a, b.data<T>(), step_b, T(0),
                          y.mutable_data<T>(), {.stride = p.m * p.n});
  });
  record(matmul_op, y, {a, b}, {a, b}, options);
  return y;
}

}  // namespace norma
