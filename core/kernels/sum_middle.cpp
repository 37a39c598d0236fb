#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/sum_middle.cpp"
#include "hwy/foreach_target.h"  // must come before the vector headers
//
#include <algorithm>

#include "core/kernels/divide.h"
#include "core/kernels/pointwise.h"
#include "core/kernels/vector_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace norma::kernels::HWY_NAMESPACE {
namespace {

// Terms of T that are added before the sum goes to f64: the error stays near 16 roundings.
constexpr std::int64_t kRun = 32;

// for (r < rows) for (c < cols) sum[c] += x[r * stride + c];
template <class T>
void column_tile(const T* x, std::int64_t stride, std::int64_t rows, std::int64_t cols,
                 double* sum) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  HWY_ALIGN T part[4 * HWY_MAX_BYTES / sizeof(T)];
  for (std::int64_t r0 = 0; r0 < rows; r0 += kRun) {
    const T* x0 = x + r0 * stride;
    const std::int64_t run = std::min(kRun, rows - r0);
    std::int64_t c = 0;
    for (; c + 4 * lanes <= cols; c += 4 * lanes) {
      auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
      for (std::int64_t r = 0; r < run; ++r) {
        const T* p = x0 + r * stride + c;
        s0 = hn::Add(s0, hn::LoadU(d, p));
        s1 = hn::Add(s1, hn::LoadU(d, p + lanes));
        s2 = hn::Add(s2, hn::LoadU(d, p + 2 * lanes));
        s3 = hn::Add(s3, hn::LoadU(d, p + 3 * lanes));
      }
      hn::Store(s0, d, part);
      hn::Store(s1, d, part + lanes);
      hn::Store(s2, d, part + 2 * lanes);
      hn::Store(s3, d, part + 3 * lanes);
      for (std::int64_t i = 0; i < 4 * lanes; ++i) sum[c + i] += static_cast<double>(part[i]);
    }
    for (; c < cols; c += lanes) {
      const std::int64_t width = std::min(lanes, cols - c);
      std::fill_n(part, width, T{});
      for (std::int64_t r = 0; r < run; ++r) {
        const T* p = x0 + r * stride + c;
        for (std::int64_t i = 0; i < width; ++i) part[i] += p[i];
      }
      for (std::int64_t i = 0; i < width; ++i) sum[c + i] += static_cast<double>(part[i]);
    }
  }
}

// for (i < n) sum += x[i];
template <class T>
double row_sum(const T* x, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  double sum = 0;
  std::int64_t i = 0;
  while (i + 4 * lanes <= n) {
    auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    for (std::int64_t k = 0; k < kRun / 4 && i + 4 * lanes <= n; ++k, i += 4 * lanes) {
      s0 = hn::Add(s0, hn::LoadU(d, x + i));
      s1 = hn::Add(s1, hn::LoadU(d, x + i + lanes));
      s2 = hn::Add(s2, hn::LoadU(d, x + i + 2 * lanes));
      s3 = hn::Add(s3, hn::LoadU(d, x + i + 3 * lanes));
    }
    const auto s = hn::Add(hn::Add(s0, s1), hn::Add(s2, s3));
    sum += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, s)));
  }
  for (; i < n; ++i) sum += static_cast<double>(x[i]);
  return sum;
}

void columns_f32(const float* x, std::int64_t stride, std::int64_t rows, std::int64_t cols,
                 double* sum) {
  column_tile(x, stride, rows, cols, sum);
}
void columns_f64(const double* x, std::int64_t stride, std::int64_t rows, std::int64_t cols,
                 double* sum) {
  column_tile(x, stride, rows, cols, sum);
}
double row_f32(const float* x, std::int64_t n) { return row_sum(x, n); }
double row_f64(const double* x, std::int64_t n) { return row_sum(x, n); }

}  // namespace
}  // namespace norma::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <vector>

#include "core/parallel.h"

namespace norma::kernels {

HWY_EXPORT(columns_f32);
HWY_EXPORT(columns_f64);
HWY_EXPORT(row_f32);
HWY_EXPORT(row_f64);

namespace {

void columns(const float* x, std::int64_t stride, std::int64_t rows, std::int64_t cols,
             double* sum) {
  HWY_DYNAMIC_DISPATCH(columns_f32)(x, stride, rows, cols, sum);
}
void columns(const double* x, std::int64_t stride, std::int64_t rows, std::int64_t cols,
             double* sum) {
  HWY_DYNAMIC_DISPATCH(columns_f64)(x, stride, rows, cols, sum);
}
double row(const float* x, std::int64_t n) { return HWY_DYNAMIC_DISPATCH(row_f32)(x, n); }
double row(const double* x, std::int64_t n) { return HWY_DYNAMIC_DISPATCH(row_f64)(x, n); }

template <class T>
void sum_rows(const T* x, std::int64_t outer, std::int64_t middle, T* y) {
  if (outer == 1) {
    y[0] = static_cast<T>(
        parallel_sum<double>(middle, kPointwiseGrain,
                             [&](std::int64_t b, std::int64_t e) { return row(x + b, e - b); }));
    return;
  }
  parallel_for(outer,
               std::max<std::int64_t>(1, kPointwiseGrain / std::max<std::int64_t>(1, middle)),
               [&](std::int64_t b, std::int64_t e) {
                 for (std::int64_t o = b; o < e; ++o)
                   y[o] = static_cast<T>(row(x + o * middle, middle));
               });
}

template <class T>
void sum_any(const T* x, std::int64_t outer, std::int64_t middle, std::int64_t inner, T* y) {
  if (outer * inner == 0) return;
  if (inner == 1) return sum_rows(x, outer, middle, y);
  // Tiles of columns; the rows are cut too where there are too few tiles to share out.
  constexpr std::int64_t kTileCols = 512;
  constexpr std::int64_t kEnoughTiles = 16;
  const std::int64_t tiles = divide_up(inner, kTileCols);
  const std::int64_t width = std::min(inner, kTileCols);
  std::int64_t rows = std::max<std::int64_t>(1, middle);
  if (outer * tiles < kEnoughTiles) rows = std::min(rows, kPointwiseGrain / width);
  const std::int64_t cuts = std::max<std::int64_t>(1, divide_up(middle, rows));
  std::vector<double> sums(static_cast<std::size_t>(outer * cuts * inner));
  const std::int64_t items = outer * cuts * tiles;
  parallel_for(items, std::max<std::int64_t>(1, kPointwiseGrain / (rows * width)),
               [&](std::int64_t b, std::int64_t e) {
                 for (std::int64_t item = b; item < e; ++item) {
                   const std::int64_t col = item % tiles * kTileCols;
                   const std::int64_t cut = item / tiles % cuts;
                   const std::int64_t o = item / tiles / cuts;
                   columns(x + (o * middle + cut * rows) * inner + col, inner,
                           std::min(rows, middle - cut * rows), std::min(kTileCols, inner - col),
                           sums.data() + (o * cuts + cut) * inner + col);
                 }
               });
  for (std::int64_t o = 0; o < outer; ++o) {
    double* first = sums.data() + o * cuts * inner;
    for (std::int64_t cut = 1; cut < cuts; ++cut) {
      const double* next = first + cut * inner;
      for (std::int64_t i = 0; i < inner; ++i) first[i] += next[i];
    }
    for (std::int64_t i = 0; i < inner; ++i) y[o * inner + i] = static_cast<T>(first[i]);
  }
}

}  // namespace

void sum_middle(const float* x, std::int64_t outer, std::int64_t middle, std::int64_t inner,
                float* y) {
  sum_any(x, outer, middle, inner, y);
}
void sum_middle(const double* x, std::int64_t outer, std::int64_t middle, std::int64_t inner,
                double* y) {
  sum_any(x, outer, middle, inner, y);
}

}  // namespace norma::kernels
#endif  // HWY_ONCE
