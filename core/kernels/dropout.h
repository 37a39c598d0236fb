// Random numbers in bulk, and dropout.
#pragma once

#include <cstdint>

#include "core/random.h"

namespace norma::kernels {

// Blocks first .. first + count - 1 of the stream, four words each: random_block() in vectors.
void random_blocks(RandomKey key, std::uint64_t first, std::int64_t count, std::uint32_t* words);

// y[i] = word i of the stream < p 2^32 ? 0 : x[i] / (1 - p), for 0 <= p < 1. x may be y.
void dropout(RandomKey key, double p, const float* x, float* y, std::int64_t n);
void dropout(RandomKey key, double p, const double* x, double* y, std::int64_t n);

}  // namespace norma::kernels
