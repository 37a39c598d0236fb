// Elementwise arithmetic with broadcasting: shapes are aligned at the last axis, and an axis of
// size 1 (or one that is missing in front) repeats. Gradients are summed back by sum_to().
//
// Operands have one element type, f32, f64, bf16 or f16 (half types are computed in f32 and rounded
// once); else Error, as for shapes that do not fit.
#pragma once

#include "core/autograd.h"

namespace norma {

[[nodiscard]] Tensor add(const Tensor& a, const Tensor& b);  // a + b
[[nodiscard]] Tensor sub(const Tensor& a, const Tensor& b);  // a - b
[[nodiscard]] Tensor mul(const Tensor& a, const Tensor& b);  // a b
[[nodiscard]] Tensor div(const Tensor& a, const Tensor& b);  // a / b
[[nodiscard]] Tensor neg(const Tensor& x);                   // -x
[[nodiscard]] Tensor add_scalar(const Tensor& x, double s);  // x + s
[[nodiscard]] Tensor mul_scalar(const Tensor& x, double s);  // x s

// The larger (smaller) one; NaN if either is. Of two equal ones each gets half of the gradient.
[[nodiscard]] Tensor maximum(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor minimum(const Tensor& a, const Tensor& b);

// a where condition (u8) is not 0, else b. All three broadcast. The one that was not chosen gets
// the gradient 0, also where its own value is not finite.
[[nodiscard]] Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);

[[nodiscard]] inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
[[nodiscard]] inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
[[nodiscard]] inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
[[nodiscard]] inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
[[nodiscard]] inline Tensor operator-(const Tensor& x) { return neg(x); }
[[nodiscard]] inline Tensor operator+(const Tensor& x, double s) { return add_scalar(x, s); }
[[nodiscard]] inline Tensor operator+(double s, const Tensor& x) { return add_scalar(x, s); }
[[nodiscard]] inline Tensor operator-(const Tensor& x, double s) { return add_scalar(x, -s); }
[[nodiscard]] inline Tensor operator-(double s, const Tensor& x) { return add_scalar(neg(x), s); }
[[nodiscard]] inline Tensor operator*(const Tensor& x, double s) { return mul_scalar(x, s); }
[[nodiscard]] inline Tensor operator*(double s, const Tensor& x) { return mul_scalar(x, s); }
[[nodiscard]] inline Tensor operator/(const Tensor& x, double s) {
  return div(x, Tensor::scalar(s, x.dtype()));
}
[[nodiscard]] inline Tensor operator/(double s, const Tensor& x) {
  return div(Tensor::scalar(s, x.dtype()), x);
}

}  // namespace norma
