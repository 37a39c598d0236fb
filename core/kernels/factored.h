// Adafactor's second moment, factored over the last two axes, and its update.
#pragma once

#include <cstdint>

namespace norma::kernels {

// A parameter as `batch` matrices of (rows, cols). A vector has one row of `cols` and no factors.
struct FactoredShape {
  std::int64_t batch = 1, rows = 1, cols = 1;
  bool factored = false;
};

// row <- row + part (mean over cols of g^2 - row), col likewise over rows, with g = grad *
// grad_scale; without factors row (cols) holds the whole moment. Shapes: grad (batch, rows, cols),
// row (batch, rows), col (batch, cols). T is float or double.
template <class T>
void factored_moments(const FactoredShape& shape, const T* grad, double grad_scale, double part,
                      T* row, T* col);

// The sum of u^2 over the parameter, u = g / sqrt(max(v, eps^2)), with
// v = row col / max(mean of row, eps), or row without factors.
template <class T>
[[nodiscard]] double factored_sum_of_squares(const FactoredShape& shape, const T* grad,
                                             double grad_scale, double eps, const T* row,
                                             const T* col);

// w <- keep w - size u.
template <class T>
void factored_update(const FactoredShape& shape, const T* grad, double grad_scale, double eps,
                     double keep, double size, const T* row, const T* col, T* w);

}  // namespace norma::kernels
