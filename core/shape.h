// Shapes: up to eight axes, held inline.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace norma {

inline constexpr int kMaxRank = 8;

// The sizes of a tensor's axes, outermost first. A scalar has rank 0 and one element.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> sizes)
      : Shape(std::span<const std::int64_t>(sizes.begin(), sizes.size())) {}
  // Throws Error above kMaxRank axes or for a negative size.
  explicit Shape(std::span<const std::int64_t> sizes);

  [[nodiscard]] int rank() const { return rank_; }
  // Product of the sizes: 1 for a scalar, 0 if any axis is empty. Throws Error beyond 2^63.
  [[nodiscard]] std::int64_t numel() const {
    std::int64_t n = 1;
    bool too_large = false;
    for (int i = 0; i < rank_; ++i) too_large |= __builtin_mul_overflow(n, sizes_[i], &n);
    if (too_large) [[unlikely]]
      throw_too_large();
    return n;
  }
  // The size of an axis; a negative axis counts from the end. Throws Error outside the rank.
  [[nodiscard]] std::int64_t operator[](int axis) const { return sizes_[normalize(axis)]; }
  void set(int axis, std::int64_t size) { sizes_[normalize(axis)] = size; }
  // Axis in 0..rank-1. Throws Error outside -rank..rank-1.
  [[nodiscard]] int normalize(int axis) const;

  [[nodiscard]] const std::int64_t* begin() const { return sizes_.data(); }
  [[nodiscard]] const std::int64_t* end() const { return sizes_.data() + rank_; }
  void push_back(std::int64_t size);
  // Axes first..last-1 (negative counts from the end).
  [[nodiscard]] Shape sub(int first, int last) const;
  // Product of the sizes of axes first..last-1.
  [[nodiscard]] std::int64_t numel(int first, int last) const;

  [[nodiscard]] bool operator==(const Shape& other) const;
  // "(2, 3)", "()" for a scalar.
  [[nodiscard]] std::string to_string() const;

 private:
  [[noreturn]] void throw_too_large() const;

  std::array<std::int64_t, kMaxRank> sizes_{};
  int rank_ = 0;
};

// The shape that a and b broadcast to: aligned at the last axis, sizes equal or 1.
// Throws Error naming `op` and both shapes if they do not fit.
[[nodiscard]] Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b);

}  // namespace norma

// "(2, 3)" in messages: require() then makes no text unless it fails.
template <>
struct fmt::formatter<norma::Shape> : fmt::formatter<std::string> {
  template <class Context>
  auto format(const norma::Shape& shape, Context& context) const {
    return fmt::formatter<std::string>::format(shape.to_string(), context);
  }
};
