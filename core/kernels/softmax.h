// Softmax and its logarithm over contiguous rows.
#pragma once

#include <cstdint>

namespace norma::kernels {

enum class SoftmaxForm : bool { plain, logarithm };

// y = exp(x - max) / sum exp(x - max) a row, or its logarithm. A row that is -inf throughout gives
// 0 (its logarithm -inf); a NaN or +inf makes its row NaN. The sums run in f64 above 2048 elements.
void softmax(SoftmaxForm form, const float* x, std::int64_t rows, std::int64_t cols, float* y);
void softmax(SoftmaxForm form, const double* x, std::int64_t rows, std::int64_t cols, double* y);

// plain:     dx = y * (dy - sum(y * dy))
// logarithm: dx = dy - exp(y) * sum(dy); 0 for a row that is -inf throughout.
// Adds to dx if `accumulate`.
void softmax_backward(SoftmaxForm form, const float* y, const float* dy, std::int64_t rows,
                      std::int64_t cols, bool accumulate, float* dx);
void softmax_backward(SoftmaxForm form, const double* y, const double* dy, std::int64_t rows,
                      std::int64_t cols, bool accumulate, double* dx);

// y[r] = log(sum(exp(x[r, :]))), -inf for a row that is -inf throughout.
void log_sum_exp(const float* x, std::int64_t rows, std::int64_t cols, float* y);
void log_sum_exp(const double* x, std::int64_t rows, std::int64_t cols, double* y);

}  // namespace norma::kernels
