#include "core/ops/compare.h"

#include "core/kernels/compare.h"
#include "core/ops/cast.h"

namespace norma {
namespace {

using kernels::Comparison;

Tensor compare(const char* name, Comparison op, const Tensor& a, const Tensor& b) {
  require(a.dtype() == b.dtype(),
          "{}: expected operands of one type; got {} and {}; convert one with to(x, dtype)", name,
          name_of(a.dtype()), name_of(b.dtype()));
  if (is_half(a.dtype())) {
    return compare(name, op, to(a.detach(), DType::f32), to(b.detach(), DType::f32));
  }
  const Shape shape = broadcast_shapes(name, a.shape(), b.shape());
  Tensor y = Tensor::empty(shape, DType::u8);
  kernels::compare(op, kernels::broadcast_plan(shape, {&a.shape(), &b.shape()}), a.dtype(), a.raw(),
                   b.raw(), y.mutable_data<std::uint8_t>());
  return y;
}

Tensor scalar_like(const Tensor& x, double s) { return Tensor::scalar(s, x.dtype()); }

}  // namespace

Tensor eq(const Tensor& a, const Tensor& b) { return compare("eq", Comparison::eq, a, b); }
Tensor ne(const Tensor& a, const Tensor& b) { return compare("ne", Comparison::ne, a, b); }
Tensor lt(const Tensor& a, const Tensor& b) { return compare("lt", Comparison::lt, a, b); }
Tensor le(const Tensor& a, const Tensor& b) { return compare("le", Comparison::le, a, b); }
Tensor gt(const Tensor& a, const Tensor& b) { return compare("gt", Comparison::gt, a, b); }
Tensor ge(const Tensor& a, const Tensor& b) { return compare("ge", Comparison::ge, a, b); }

Tensor eq(const Tensor& x, double s) { return eq(x, scalar_like(x, s)); }
Tensor ne(const Tensor& x, double s) { return ne(x, scalar_like(x, s)); }
Tensor lt(const Tensor& x, double s) { return lt(x, scalar_like(x, s)); }
Tensor le(const Tensor& x, double s) { return le(x, scalar_like(x, s)); }
Tensor gt(const Tensor& x, double s) { return gt(x, scalar_like(x, s)); }
Tensor ge(const Tensor& x, double s) { return ge(x, scalar_like(x, s)); }

}  // namespace norma
