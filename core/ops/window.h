// Sizes of windows over images.
#pragma once

#include <cstdint>
#include <string>

namespace norma {

// A size along the height and along the width; one number means both.
struct Extent {
  std::int64_t h = 1, w = 1;

  constexpr Extent(std::int64_t both) : h(both), w(both) {}
  constexpr Extent(std::int64_t height, std::int64_t width) : h(height), w(width) {}
  [[nodiscard]] bool operator==(const Extent&) const = default;
};

// "(3, 5)".
[[nodiscard]] std::string to_string(const Extent& e);

// Throws Error naming `op` and what it is unless both sizes are at least `least`.
void check_extent(const char* op, const char* what, const Extent& e, std::int64_t least);

// How many windows of `kernel` fit: floor((size + 2 padding - reach) / stride) + 1, where a window
// reaches over dilation (kernel - 1) + 1 elements. Throws Error naming `op` if none fits.
[[nodiscard]] Extent window_counts(const char* op, const Extent& size, const Extent& kernel,
                                   const Extent& stride, const Extent& padding,
                                   const Extent& dilation);

}  // namespace norma
