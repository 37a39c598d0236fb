#include "core/ops/axes.h"

#include <algorithm>

#include "core/error.h"

namespace norma {

Axes::Axes(std::span<const int> axes) {
  require(axes.size() <= static_cast<std::size_t>(kMaxRank), "axes: expected at most {}; got {}",
          kMaxRank, axes.size());
  std::copy(axes.begin(), axes.end(), axes_.begin());
  size_ = static_cast<int>(axes.size());
}

int checked_axis(const char* op, const Shape& shape, int axis) {
  const int rank = shape.rank();
  require(axis >= -rank && axis < rank, "{}: expected an axis in {}..{} for shape {}; got {}", op,
          -rank, rank - 1, shape, axis);
  return axis < 0 ? axis + rank : axis;
}

AxisMask axis_mask(const char* op, const Shape& shape, const Axes& axes) {
  if (axes.empty()) return (AxisMask{1} << shape.rank()) - 1;
  AxisMask mask = 0;
  for (int axis : axes) {
    const AxisMask bit = AxisMask{1} << checked_axis(op, shape, axis);
    require((mask & bit) == 0, "{}: axis {} of shape {} is named twice", op, axis, shape);
    mask |= bit;
  }
  return mask;
}

Shape reduced_shape(const Shape& shape, AxisMask mask, Keep keep) {
  Shape out;
  for (int i = 0; i < shape.rank(); ++i) {
    if ((mask >> i & 1) == 0) {
      out.push_back(shape[i]);
    } else if (keep == Keep::yes) {
      out.push_back(1);
    }
  }
  return out;
}

std::int64_t reduced_count(const Shape& shape, AxisMask mask) {
  std::int64_t n = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (mask >> i & 1) n *= shape[i];
  }
  return n;
}

AxisSplit split_at(const Shape& shape, int axis) {
  return {shape.numel(0, axis), shape[axis], shape.numel(axis + 1, shape.rank())};
}

}  // namespace norma
