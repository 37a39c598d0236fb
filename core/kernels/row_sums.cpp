#include "core/kernels/row_sums.h"

#include <algorithm>

#include "core/kernels/divide.h"
#include "core/kernels/row_sums_task.h"
#include "core/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/row_sums.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace norma::kernels {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// for i, j: y[i * ldy + j] += x[i * ldx + j]
template <class T>
void AddMatrix(const T* x, std::int64_t ldx, std::int64_t rows, std::int64_t cols, T* y,
               std::int64_t ldy) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < rows; ++i, x += ldx, y += ldy) {
    std::int64_t j = 0;
    for (; j + lanes <= cols; j += lanes) {
      hn::StoreU(hn::Add(hn::LoadU(d, y + j), hn::LoadU(d, x + j)), d, y + j);
    }
    for (; j < cols; ++j) y[j] += x[j];
  }
}

// for i, j: y[j] += x[i * stride + j], with four partial sums
template <class T>
void SumBlock(const T* x, std::int64_t rows, std::int64_t n, std::int64_t stride, T* y) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    auto s0 = hn::Zero(d), s1 = hn::Zero(d), s2 = hn::Zero(d), s3 = hn::Zero(d);
    std::int64_t i = 0;
    for (; i + 4 <= rows; i += 4) {
      const T* p = x + i * stride + j;
      s0 = hn::Add(s0, hn::LoadU(d, p));
      s1 = hn::Add(s1, hn::LoadU(d, p + stride));
      s2 = hn::Add(s2, hn::LoadU(d, p + 2 * stride));
      s3 = hn::Add(s3, hn::LoadU(d, p + 3 * stride));
    }
    for (; i < rows; ++i) s0 = hn::Add(s0, hn::LoadU(d, x + i * stride + j));
    const auto sum = hn::Add(hn::Add(s0, s1), hn::Add(s2, s3));
    hn::StoreU(hn::Add(hn::LoadU(d, y + j), sum), d, y + j);
  }
  for (; j < n; ++j) {
    T s = 0;
    for (std::int64_t i = 0; i < rows; ++i) s += x[i * stride + j];
    y[j] += s;
  }
}

void AddMatrixF32(const float* x, std::int64_t ldx, std::int64_t rows, std::int64_t cols, float* y,
                  std::int64_t ldy) {
  AddMatrix(x, ldx, rows, cols, y, ldy);
}
void AddMatrixF64(const double* x, std::int64_t ldx, std::int64_t rows, std::int64_t cols,
                  double* y, std::int64_t ldy) {
  AddMatrix(x, ldx, rows, cols, y, ldy);
}
void SumBlockF32(const float* x, std::int64_t r, std::int64_t n, std::int64_t s, float* y) {
  SumBlock(x, r, n, s, y);
}
void SumBlockF64(const double* x, std::int64_t r, std::int64_t n, std::int64_t s, double* y) {
  SumBlock(x, r, n, s, y);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace norma::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace norma::kernels {

HWY_EXPORT(AddMatrixF32);
HWY_EXPORT(AddMatrixF64);
HWY_EXPORT(SumBlockF32);
HWY_EXPORT(SumBlockF64);

namespace {

// Rows of one partial sum of sum_rows.
constexpr std::int64_t kSumRows = 64;

void sum_block(const float* x, std::int64_t r, std::int64_t n, std::int64_t s, float* y) {
  HWY_DYNAMIC_DISPATCH(SumBlockF32)(x, r, n, s, y);
}
void sum_block(const double* x, std::int64_t r, std::int64_t n, std::int64_t s, double* y) {
  HWY_DYNAMIC_DISPATCH(SumBlockF64)(x, r, n, s, y);
}

}  // namespace

void add_matrix(const float* x, std::int64_t ldx, std::int64_t rows, std::int64_t cols, float* y,
                std::int64_t ldy) {
  HWY_DYNAMIC_DISPATCH(AddMatrixF32)(x, ldx, rows, cols, y, ldy);
}
void add_matrix(const double* x, std::int64_t ldx, std::int64_t rows, std::int64_t cols, double* y,
                std::int64_t ldy) {
  HWY_DYNAMIC_DISPATCH(AddMatrixF64)(x, ldx, rows, cols, y, ldy);
}

// A chunk has whole cache lines, and at least 32k additions.
template <class T>
RowSumTask<T>::RowSumTask(const RowSumCall<T>& sum) : call(sum) {
  grain = round_up(std::max<std::int64_t>(64, 32768 / std::max<std::int64_t>(call.rows, 1)), 64);
  if (call.rows >= 2 * kLeastHalf) halves.allocate(call.cols, divide_up(call.cols, grain));
}

template <class T>
void RowSumTask<T>::run(std::int64_t chunk) const {
  const auto [half, part] = half_piece(chunk, divide_up(call.cols, grain));
  const std::int64_t begin = part * grain, end = std::min(call.cols, begin + grain);
  if (!halves) return add(0, call.rows, begin, end, call.accumulate, call.y);
  const std::int64_t middle = round_up(call.rows / 2, kSumRows);
  if (half == 0) {
    add(0, middle, begin, end, call.accumulate, call.y);
  } else {
    add(middle, call.rows, begin, end, false, halves.second);
  }
  if (halves.last(part)) add_matrix(halves.second + begin, 0, 1, end - begin, call.y + begin, 0);
}

template <class T>
void RowSumTask<T>::add(std::int64_t first, std::int64_t stop, std::int64_t begin, std::int64_t end,
                        bool accumulate, T* y) const {
  if (!accumulate) std::fill(y + begin, y + end, T(0));
  for (std::int64_t i = first; i < stop; i += kSumRows) {
    sum_block(call.x + i * call.cols + begin, std::min(kSumRows, stop - i), end - begin, call.cols,
              y + begin);
  }
}

template struct RowSumTask<float>;
template struct RowSumTask<double>;

namespace {
template <class T>
void run_sum_rows(const RowSumCall<T>& call) {
  const RowSumTask<T> sum(call);
  parallel_for(sum.chunks(), 1, [&](std::int64_t chunk, std::int64_t) { sum.run(chunk); });
}
}  // namespace

void sum_rows(const float* x, std::int64_t rows, std::int64_t cols, bool accumulate, float* y) {
  run_sum_rows(RowSumCall<float>{x, rows, cols, accumulate, y});
}
void sum_rows(const double* x, std::int64_t rows, std::int64_t cols, bool accumulate, double* y) {
  run_sum_rows(RowSumCall<double>{x, rows, cols, accumulate, y});
}

}  // namespace norma::kernels
#endif  // HWY_ONCE
