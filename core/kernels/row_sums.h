// Sums over the rows of a matrix, for f32 and f64: the gradient of a bias.
#pragma once

#include <cstdint>

namespace norma::kernels {

// A call of sum_rows(), for gemm_group().
template <class T>
struct RowSumCall {
  const T* x = nullptr;
  std::int64_t rows = 0, cols = 0;
  bool accumulate = false;
  T* y = nullptr;
};

// y (cols) = sum over the rows of x (rows, cols), added to y if `accumulate`. Rows are summed in
// blocks of fixed size whose sums are added in order.
void sum_rows(const float* x, std::int64_t rows, std::int64_t cols, bool accumulate, float* y);
void sum_rows(const double* x, std::int64_t rows, std::int64_t cols, bool accumulate, double* y);

// y (rows, cols) += x (rows, cols), on the calling thread; the rows of x begin every ldx elements
// (0: x is one row, which is added to all), those of y every ldy.
void add_matrix(const float* x, std::int64_t ldx, std::int64_t rows, std::int64_t cols, float* y,
                std::int64_t ldy);
void add_matrix(const double* x, std::int64_t ldx, std::int64_t rows, std::int64_t cols, double* y,
                std::int64_t ldy);

}  // namespace norma::kernels
