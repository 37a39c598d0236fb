// Rotary position embedding.
#pragma once

#include <cstdint>

namespace norma::kernels {

// The two members of pair i of a head of D elements: i and i + D/2 (half), 2i and 2i + 1
// (interleaved).
enum class RopePairs : std::uint8_t { half, interleaved };

struct RopeShape {
  std::int64_t batch = 0, length = 0, heads = 0, width = 0;
  double base = 10000;
  std::int64_t offset = 0;  // the position of the first element along `length`
  RopePairs pairs = RopePairs::half;
  bool inverse = false;  // rotate by the opposite angle
};

// Pair i at position p turns by p * base^(-2i/width):
// (y1, y2) = (x1 cos - x2 sin, x2 cos + x1 sin). Arrays are (batch, length, heads, width).
// Numerics: the angles are computed in f64, their cosine and sine kept in x's type.
void rope(const RopeShape& shape, const float* x, float* y);
void rope(const RopeShape& shape, const double* x, double* y);

}  // namespace norma::kernels
