// Elementwise comparisons with broadcasting: u8 tensors of 1 (true) and 0. Operands have one
// element type, of any kind. Nothing is recorded. A comparison with NaN is false, but ne is true.
#pragma once

#include "core/autograd.h"

namespace norma {

[[nodiscard]] Tensor eq(const Tensor& a, const Tensor& b);  // a == b
[[nodiscard]] Tensor ne(const Tensor& a, const Tensor& b);  // a != b
[[nodiscard]] Tensor lt(const Tensor& a, const Tensor& b);  // a < b
[[nodiscard]] Tensor le(const Tensor& a, const Tensor& b);  // a <= b
[[nodiscard]] Tensor gt(const Tensor& a, const Tensor& b);  // a > b
[[nodiscard]] Tensor ge(const Tensor& a, const Tensor& b);  // a >= b

// The same with a scalar, converted to the type of x.
[[nodiscard]] Tensor eq(const Tensor& x, double s);
[[nodiscard]] Tensor ne(const Tensor& x, double s);
[[nodiscard]] Tensor lt(const Tensor& x, double s);
[[nodiscard]] Tensor le(const Tensor& x, double s);
[[nodiscard]] Tensor gt(const Tensor& x, double s);
[[nodiscard]] Tensor ge(const Tensor& x, double s);

}  // namespace norma
