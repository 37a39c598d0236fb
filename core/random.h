// Counter-based random numbers (Philox 4x32-10, Salmon et al. 2011, through Random123).
//
// A stream is named by a seed and a path ("init/blocks.0.attention.q.weight", "data/epoch 3"), and
// its i-th number is a function of (seed, path, i): changing one layer changes no other's numbers,
// threads may draw in any order, and resuming needs no generator state.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/tensor.h"

namespace norma {

struct RandomKey {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;  // hash of the path
};

// The stream of `path` under `seed`.
[[nodiscard]] RandomKey random_key(std::uint64_t seed, std::string_view path);

// Four 32-bit numbers: block `counter` of the stream.
[[nodiscard]] std::array<std::uint32_t, 4> random_block(RandomKey key, std::uint64_t counter);

// In [0, 1), from the upper 24 (53) bits.
[[nodiscard]] inline float uniform_f32(std::uint32_t bits) {
  return static_cast<float>(bits >> 8) * 0x1p-24f;
}
[[nodiscard]] inline double uniform_f64(std::uint32_t high, std::uint32_t low) {
  return static_cast<double>((static_cast<std::uint64_t>(high) << 32 | low) >> 11) * 0x1p-53;
}

// A stream read in order: for data generators.
class RandomStream {
 public:
  explicit RandomStream(RandomKey key, std::uint64_t first_block = 0)
      : key_(key), counter_(first_block) {}
  [[nodiscard]] std::uint32_t next_u32();
  [[nodiscard]] double uniform();                    // [0, 1)
  [[nodiscard]] double normal();                     // N(0, 1), Box-Muller
  [[nodiscard]] std::int64_t below(std::int64_t n);  // uniform over 0..n-1, without bias

 private:
  RandomKey key_;
  std::uint64_t counter_;
  std::array<std::uint32_t, 4> block_{};
  int used_ = 4;
};

// Element i depends on (key, i) alone; f32 and f64 tensors get the same values up to rounding.
// x[i] ~ U[low, high); in a half type, rounding may give high. Throws Error where low > high, or
// for a type that is not floating.
void fill_uniform(Tensor& x, double low, double high, RandomKey key);
// x[i] ~ N(mean, std^2), by Box and Muller. Throws Error where std < 0, or for a type that is not
// floating.
void fill_normal(Tensor& x, double mean, double std, RandomKey key);
// A random order of 0..n-1 (Fisher-Yates).
[[nodiscard]] std::vector<std::int64_t> random_permutation(std::int64_t n, RandomKey key);

}  // namespace norma
