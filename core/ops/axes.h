// A list of axes, as an argument of an op.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "core/shape.h"

namespace norma {

// Axes of a tensor, negative ones counted from the end: `sum(x, {0, -1})`. In a reduction the empty
// list means all axes.
class Axes {
 public:
  Axes() = default;
  Axes(std::initializer_list<int> axes) : Axes(std::span<const int>(axes.begin(), axes.size())) {}
  Axes(const std::vector<int>& axes) : Axes(std::span<const int>(axes)) {}
  // Throws Error above kMaxRank axes.
  Axes(std::span<const int> axes);

  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] int operator[](int i) const { return axes_[static_cast<std::size_t>(i)]; }
  [[nodiscard]] const int* begin() const { return axes_.data(); }
  [[nodiscard]] const int* end() const { return axes_.data() + size_; }

 private:
  std::array<int, kMaxRank> axes_{};
  int size_ = 0;
};

// A set of axes as bits: bit i stands for axis i.
using AxisMask = std::uint32_t;

// The set that `axes` names in `shape`; all axes for an empty list. Throws Error naming `op` for an
// axis that does not exist or is named twice.
[[nodiscard]] AxisMask axis_mask(const char* op, const Shape& shape, const Axes& axes);
// `shape` without the axes of `mask`, or with size 1 in their place if `keep`.
enum class Keep : bool { no, yes };
[[nodiscard]] Shape reduced_shape(const Shape& shape, AxisMask mask, Keep keep);
// The product of the sizes of the axes of `mask`.
[[nodiscard]] std::int64_t reduced_count(const Shape& shape, AxisMask mask);
// `axis` in 0..rank-1. Throws Error naming `op` outside of it.
[[nodiscard]] int checked_axis(const char* op, const Shape& shape, int axis);

// A shape seen around one axis: element (o, k, i) lies at (o * n + k) * inner + i.
struct AxisSplit {
  std::int64_t outer = 1, n = 1, inner = 1;
};
[[nodiscard]] AxisSplit split_at(const Shape& shape, int axis);

}  // namespace norma
