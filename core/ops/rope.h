// Rotary position embedding.
#pragma once

#include <cstdint>

#include "core/autograd.h"

namespace norma {

// The two members of pair i of a head: elements i and i + D/2 (half: GPT-NeoX, LLaMA in
// transformers), or 2i and 2i + 1 (interleaved: the paper, LLaMA's own code).
enum class RopeLayout : std::uint8_t { half, interleaved };

struct RopeOptions {
  double base = 10000;
  RopeLayout layout = RopeLayout::half;
  std::int64_t offset = 0;  // the position of x[:, 0]
};

// Pair i at position p turns by the angle p * base^(-2i/D):
// (y1, y2) = (x1 cos - x2 sin, x2 cos + x1 sin). So q . k depends on the distance alone.
//
// Shapes: x (B, T, H, D), y likewise.
// Saves: nothing; the gradient turns by the opposite angle.
// Numerics: the angles are computed in f64; cosine and sine are f32 also for half types.
// Throws: for an odd D, for a base that is not above 0.
// Source: Su et al. 2021, arXiv 2104.09864.
[[nodiscard]] Tensor rope(const Tensor& x, RopeOptions options = {});

}  // namespace norma
