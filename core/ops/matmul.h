// Matrix product.
#pragma once

#include "core/tensor.h"

namespace norma {

struct MatmulOptions {
  bool transpose_a = false;
  bool transpose_b = false;
};

// y = op(a) op(b), where op transposes the last two axes if asked to.
//
// Shapes: a (..., m, k) or (..., k, m) if transpose_a; b (..., k, n) or (..., n, k) if transpose_b;
// y (..., m, n). The leading axes broadcast. Any size may be 0; y is 0 where k is.
// Numerics: half types are multiplied in f32 and rounded once.
// Throws: below two axes, if the inner sizes or the leading axes do not fit, for mixed types.
[[nodiscard]] Tensor matmul(const Tensor& a, const Tensor& b, MatmulOptions options = {});

}  // namespace norma
