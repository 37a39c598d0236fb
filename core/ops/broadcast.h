// Broadcasting, and its counterpart: summing what was repeated. Each is the other's gradient.
#pragma once

#include "core/autograd.h"

namespace norma {

// x repeated along axes of size 1 and along new leading axes, so that it has `shape`.
// Returns x itself if it has that shape. Throws Error if it does not fit.
[[nodiscard]] Tensor broadcast_to(const Tensor& x, const Shape& shape);

// The sum of x over the axes along which a tensor of `shape` would be repeated to give x's shape.
// Returns x itself if it has that shape. Throws Error if it does not fit.
// Numerics: f32 sums go on in f64 after at most 32 terms; half types are summed in f32.
[[nodiscard]] Tensor sum_to(const Tensor& x, const Shape& shape);

}  // namespace norma
