// Conversion between element types.
#pragma once

#include <cstdint>

#include "core/dtype.h"

namespace norma::kernels {

// y[i] = x[i] in the type `to`. To a smaller floating type: nearest, ties to even (f64 to a half
// type goes through f32). To an integer: towards zero, saturated at its ends, NaN gives 0.
void convert(DType from, const void* x, DType to, void* y, std::int64_t n);

}  // namespace norma::kernels
