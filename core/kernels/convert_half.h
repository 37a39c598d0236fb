// Conversion between f32 and the half types, in vectors.
#pragma once

#include <cstdint>

#include "core/dtype.h"

namespace norma::kernels {

// y[i] = x[i], to nearest, ties to even; on the calling thread.
void convert_half(const float* x, bf16* y, std::int64_t n);
void convert_half(const float* x, f16* y, std::int64_t n);
void convert_half(const bf16* x, float* y, std::int64_t n);
void convert_half(const f16* x, float* y, std::int64_t n);

}  // namespace norma::kernels
