// Copies that change the place of elements, not their values.
#pragma once

#include <cstdint>
#include <span>

#include "core/shape.h"

namespace norma::kernels {

// Row r of y gets row r of x: rows of `bytes`, that start `x_stride` and `y_stride` bytes apart.
void copy_rows(const void* x, std::int64_t x_stride, void* y, std::int64_t y_stride,
               std::int64_t rows, std::int64_t bytes);
// Sets rows of `bytes`, `stride` bytes apart, to zero bytes.
void zero_rows(void* y, std::int64_t stride, std::int64_t rows, std::int64_t bytes);
// y[r * y_stride + i] += x[r * x_stride + i] for i < cols; strides in elements.
void add_rows(const float* x, std::int64_t x_stride, float* y, std::int64_t y_stride,
              std::int64_t rows, std::int64_t cols);
void add_rows(const double* x, std::int64_t x_stride, double* y, std::int64_t y_stride,
              std::int64_t rows, std::int64_t cols);

// y = x with its axes in another order: axis i of y is axis axes[i] of x. Elements of `bytes` 1, 2,
// 4 or 8.
void permute(const void* x, const Shape& shape, std::span<const int> axes, std::int64_t bytes,
             void* y);

}  // namespace norma::kernels
