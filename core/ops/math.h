// Elementwise functions of one operand. Each is a primitive: its gradient is built from ops.
//
// f32, f64, and half types (computed in f32, rounded once); else Error.
#pragma once

#include "core/autograd.h"

namespace norma {

[[nodiscard]] Tensor exp(const Tensor& x);
[[nodiscard]] Tensor log(const Tensor& x);    // natural; -inf at 0, NaN below
[[nodiscard]] Tensor sqrt(const Tensor& x);   // the gradient at 0 is infinite
[[nodiscard]] Tensor rsqrt(const Tensor& x);  // 1 / sqrt(x)
[[nodiscard]] Tensor tanh(const Tensor& x);
[[nodiscard]] Tensor erf(const Tensor& x);      // 2 / sqrt(pi) times the integral of e^-t^2 from 0
[[nodiscard]] Tensor sigmoid(const Tensor& x);  // 1 / (1 + e^-x)
[[nodiscard]] Tensor abs(const Tensor& x);      // the gradient at 0 is 0
[[nodiscard]] Tensor square(const Tensor& x);   // x^2
[[nodiscard]] Tensor sin(const Tensor& x);
[[nodiscard]] Tensor cos(const Tensor& x);
// -1, 0 or 1; NaN of NaN. Nothing is recorded.
[[nodiscard]] Tensor sign(const Tensor& x);

// x^p, as std::pow: x^0 = 1 everywhere. The gradient p x^(p-1) is 0 for p = 0, also at x = 0.
[[nodiscard]] Tensor pow(const Tensor& x, double p);
// a^b with broadcasting. The gradient with respect to b, a^b ln a, is 0 at a = 0 where b >= 0; for
// a < 0 it is NaN. The one with respect to a, b a^(b-1), is 0 at a = b = 0.
[[nodiscard]] Tensor pow(const Tensor& a, const Tensor& b);

}  // namespace norma
