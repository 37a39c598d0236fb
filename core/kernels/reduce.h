// Reductions over the middle axis of (outer, n, inner). Sums are in sum_middle of pointwise.h.
#pragma once

#include <cstdint>

namespace norma::kernels {

// Elements of a chunk of the loops below.
inline constexpr std::int64_t kReduceGrain = 32768;
// Columns that are reduced together: their sums in f64 take 4 KiB.
inline constexpr std::int64_t kReduceStrip = 512;

enum class Extreme : bool { max, min };

// y[o, i] = the largest (smallest) of x[o, :, i], NaN if one is NaN. n is at least 1.
void extreme(Extreme which, const float* x, std::int64_t outer, std::int64_t n, std::int64_t inner,
             float* y);
void extreme(Extreme which, const double* x, std::int64_t outer, std::int64_t n, std::int64_t inner,
             double* y);

// y[o, i] = the first k with x[o, k, i] the largest, or the first NaN. n is at least 1.
void argmax(const float* x, std::int64_t outer, std::int64_t n, std::int64_t inner,
            std::int64_t* y);
void argmax(const double* x, std::int64_t outer, std::int64_t n, std::int64_t inner,
            std::int64_t* y);

// y[o, i] = sum over k of (x[o, k, i] - c[o, i])^2 in f64, with c the mean over k if `centre`, else
// 0. Two passes: the mean first, in f64.
enum class Centre : bool { zero, mean };
void sum_squares(Centre centre, const float* x, std::int64_t outer, std::int64_t n,
                 std::int64_t inner, double* y);
void sum_squares(Centre centre, const double* x, std::int64_t outer, std::int64_t n,
                 std::int64_t inner, double* y);

}  // namespace norma::kernels
