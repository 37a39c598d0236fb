#include "core/shape.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"

namespace norma {

Shape::Shape(std::span<const std::int64_t> sizes) {
  for (std::int64_t s : sizes) push_back(s);
}

int Shape::normalize(int axis) const {
  require(axis >= -rank_ && axis < rank_, "shape: axis {} does not exist in {}, which has {} axes",
          axis, *this, rank_);
  return axis < 0 ? axis + rank_ : axis;
}

void Shape::push_back(std::int64_t size) {
  require(rank_ < kMaxRank, "shape: expected at most {} axes", kMaxRank);
  require(size >= 0, "shape: expected sizes of at least 0; got {}", size);
  sizes_[rank_++] = size;
}

Shape Shape::sub(int first, int last) const {
  if (first < 0) first += rank_;
  if (last < 0) last += rank_;
  require(0 <= first && first <= last && last <= rank_, "shape: no axes {} to {} in {}", first,
          last, *this);
  return Shape(std::span<const std::int64_t>(begin() + first, begin() + last));
}

void Shape::throw_too_large() const {
  throw Error::format("shape: {} has more elements than can be counted", *this);
}

std::int64_t Shape::numel(int first, int last) const { return sub(first, last).numel(); }

bool Shape::operator==(const Shape& other) const {
  return rank_ == other.rank_ && std::equal(begin(), end(), other.begin());
}

std::string Shape::to_string() const {
  return fmt::format("({})", fmt::join(begin(), end(), ", "));
}

Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b) {
  Shape out = a.rank() >= b.rank() ? a : b;
  const Shape& shorter = a.rank() >= b.rank() ? b : a;
  const int lead = out.rank() - shorter.rank();
  for (int i = 0; i < shorter.rank(); ++i) {
    const std::int64_t x = out[lead + i], y = shorter[i];
    require(x == y || x == 1 || y == 1,
            "{}: shapes {} and {} do not broadcast: axis {} from the end has sizes {} and {}", op,
            a, b, shorter.rank() - i, x, y);
    out.set(lead + i, x == 1 ? y : x);
  }
  return out;
}

}  // namespace norma
