// Whole numbers rounded up, for what is cut into equal parts.
#pragma once

#include <cstdint>

namespace norma::kernels {

// The parts of size b > 0 that cover a >= 0.
constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
// The least multiple of b > 0 that is at least a >= 0.
constexpr std::int64_t round_up(std::int64_t a, std::int64_t b) { return divide_up(a, b) * b; }

}  // namespace norma::kernels
