// Ops that move elements: views, permutations, joining and cutting. All element types.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/autograd.h"
#include "core/ops/axes.h"

namespace norma {

// The same elements, row-major, in another shape. Shares memory. Throws Error if the numbers of
// elements differ.
[[nodiscard]] Tensor reshape(const Tensor& x, const Shape& shape);
// Axes first..last (inclusive, negative from the end) as one axis. Shares memory.
[[nodiscard]] Tensor flatten(const Tensor& x, int first = 0, int last = -1);

// A copy with the axes in another order: axis i of the result is axis axes[i] of x. Throws Error
// unless `axes` names every axis once.
[[nodiscard]] Tensor permute(const Tensor& x, const Axes& axes);
// permute() that exchanges two axes.
[[nodiscard]] Tensor transpose(const Tensor& x, int a = -2, int b = -1);

// The tensors behind each other along `axis`. Throws Error for an empty list, or if types or other
// axes differ.
[[nodiscard]] Tensor concatenate(std::span<const Tensor> tensors, int axis);
[[nodiscard]] Tensor concatenate(std::initializer_list<Tensor> tensors, int axis);

// Elements start..stop-1 along `axis`; negative positions count from the end. Shares memory if all
// axes before it have size 1 (so always for axis 0), else a copy. Throws Error unless
// 0 <= start <= stop <= size.
[[nodiscard]] Tensor slice(const Tensor& x, int axis, std::int64_t start, std::int64_t stop);
// Consecutive slices of the given sizes. Throws Error if they do not add up to the axis.
[[nodiscard]] std::vector<Tensor> split(const Tensor& x, int axis,
                                        std::span<const std::int64_t> sizes);
[[nodiscard]] std::vector<Tensor> split(const Tensor& x, int axis,
                                        std::initializer_list<std::int64_t> sizes);
// x with `before` zeros in front and `after` behind along `axis`: the gradient of slice().
[[nodiscard]] Tensor pad(const Tensor& x, int axis, std::int64_t before, std::int64_t after);

// Every element `times` times in a row along `axis`: [a, b] -> [a, a, b, b].
[[nodiscard]] Tensor repeat_interleave(const Tensor& x, int axis, std::int64_t times);
// The whole axis `times` times: [a, b] -> [a, b, a, b].
[[nodiscard]] Tensor repeat(const Tensor& x, int axis, std::int64_t times);

}  // namespace norma
