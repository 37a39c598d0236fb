// Reading and adding by index. Indices have been checked.
#pragma once

#include <cstdint>

namespace norma::kernels {

// y[o, k, i] = x[o, index[o, k, i], i] with x (outer, n, inner), index and y (outer, m, inner);
// elements of `bytes` 1, 2, 4 or 8.
void gather(const void* x, const std::int64_t* index, std::int64_t outer, std::int64_t n,
            std::int64_t inner, std::int64_t m, std::int64_t bytes, void* y);

// y[o, index[o, k, i], i] += source[o, k, i], in the order of k.
void scatter_add(const std::int64_t* index, const float* source, std::int64_t outer, std::int64_t n,
                 std::int64_t inner, std::int64_t m, float* y);
void scatter_add(const std::int64_t* index, const double* source, std::int64_t outer,
                 std::int64_t n, std::int64_t inner, std::int64_t m, double* y);

// y[k] = x[ids[k]]: rows of `row_bytes`.
void gather_rows(const void* x, const std::int64_t* ids, std::int64_t count, std::int64_t row_bytes,
                 void* y);

// dx[r] = (dx[r] +) the sum of dy[k] over the k with ids[k] = r, but 0 more for r = padding_id
// (-1: none). dx (rows, width), dy (count, width). Sums in f64 in the order of k.
void add_rows_by_id(const float* dy, const std::int64_t* ids, std::int64_t count, std::int64_t rows,
                    std::int64_t width, std::int64_t padding_id, bool accumulate, float* dx);
void add_rows_by_id(const double* dy, const std::int64_t* ids, std::int64_t count,
                    std::int64_t rows, std::int64_t width, std::int64_t padding_id, bool accumulate,
                    double* dx);

}  // namespace norma::kernels
