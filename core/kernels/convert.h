// Conversion between element types.
#pragma once

#include <cstdint>

#include "core/dtype.h"

namespace norma::kernels {

// y[i] = x[i] in the type `to`. To a smaller floating type: nearest, ties to even (f64 to a half
// type goes through f32). To an integer: towards zero, saturated at its ends, NaN gives 0.
void convert(DType from, const void* x, DType to, void* y, std::int64_t n);

// y[i] = a[i] + b[i] in bf16 or f16, added in f32 and rounded once. y may be a.
void add_halves(DType half, const void* a, const void* b, void* y, std::int64_t n);

}  // namespace norma::kernels
