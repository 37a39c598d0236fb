// Conversion of the element type.
#pragma once

#include "core/autograd.h"

namespace norma {

// x in another element type; x itself if it has it already. Rounds to nearest, ties to even; to an
// integer type towards zero, saturated, NaN to 0. Between floating types the gradient is cast back;
// to or from an integer nothing is recorded.
[[nodiscard]] Tensor to(const Tensor& x, DType dtype);

}  // namespace norma
