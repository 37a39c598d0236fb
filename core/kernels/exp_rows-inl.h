// Maximum and sum of exponentials of a row, for softmax and cross-entropy. Include it behind
// hwy/highway.h in a file that is compiled once an instruction set.
#if defined(NORMA_KERNELS_EXP_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMA_KERNELS_EXP_ROWS_INL_H_
#undef NORMA_KERNELS_EXP_ROWS_INL_H_
#else
#define NORMA_KERNELS_EXP_ROWS_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/kernels/math-inl.h"
#include "core/kernels/tail-inl.h"
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace norma::kernels::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// Elements that are read twice in a row, for the maximum and for the sum: they stay in the
// first-level cache. Also the longest sum that runs in the element's own type, on many lanes.
constexpr std::int64_t kExpBlock = 2048;

template <class T>
inline constexpr T kMinusInfinity = -std::numeric_limits<T>::infinity();

// e^v for v <= 0. Highway's Exp gives 0 for NaN; here NaN stays, so that a loss shows it.
template <class D, class V>
HWY_INLINE V exp_keeping_nan(D d, V v) {
  if constexpr (kIsF32<D>) {
    return exp_negative(d, v);
  } else {
    return hn::IfThenElse(hn::Eq(v, v), hn::Exp(d, v), v);
  }
}

// The same where it is a term of a sum that is at least 1.
template <class D, class V>
HWY_INLINE V exp_term(D d, V v) {
  if constexpr (kIsF32<D>) {
    return exp_negative_of_sum(d, v);
  } else {
    return exp_keeping_nan(d, v);
  }
}

// LoadTail with `rest` in the lanes from n on.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_tail_or(D d, const T* p, std::int64_t n, T rest) {
  return hn::IfThenElse(hn::FirstN(d, static_cast<std::size_t>(n)), LoadTail(d, p, n),
                        hn::Set(d, rest));
}

// m = max(m, x[i]) from -inf on; a NaN may be lost.
template <class T>
HWY_INLINE T max_of(const T* x, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto m0 = hn::Set(d, kMinusInfinity<T>), m1 = m0, m2 = m0, m3 = m0;
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    m0 = hn::Max(m0, hn::LoadU(d, x + i));
    m1 = hn::Max(m1, hn::LoadU(d, x + i + lanes));
    m2 = hn::Max(m2, hn::LoadU(d, x + i + 2 * lanes));
    m3 = hn::Max(m3, hn::LoadU(d, x + i + 3 * lanes));
  }
  for (; i + lanes <= n; i += lanes) m0 = hn::Max(m0, hn::LoadU(d, x + i));
  if (i < n) m1 = hn::Max(m1, load_tail_or(d, x + i, n - i, kMinusInfinity<T>));
  return MaxLane(d, hn::Max(hn::Max(m0, m1), hn::Max(m2, m3)));
}

template <class T>
bool has_nan(const T* x, std::int64_t n) {
  return std::any_of(x, x + n, [](T v) { return std::isnan(v); });
}

// for (i < n) sum += exp(x[i] - m); the result is finite and at least 1 where m is the maximum.
// With kStore, y[i] = exp(x[i] - m) too. n is at most kExpBlock. `next`, which may be null, is what
// is read next: it comes from memory while the exponentials are computed. Not inline: six of them
// take a compiler long enough once.
template <bool kStore, class T>
HWY_NOINLINE double sum_exp_block(const T* x, std::int64_t n, T m, T* y, const T* next) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto vm = hn::Set(d, m);
  const auto term = [&](hn::Vec<decltype(d)> v) HWY_ATTR {
    if constexpr (kStore) return exp_keeping_nan(d, v);
    return exp_term(d, v);
  };
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    if (next) PrefetchRun(next + i, 4 * lanes);
    const auto e0 = term(hn::Sub(hn::LoadU(d, x + i), vm));
    const auto e1 = term(hn::Sub(hn::LoadU(d, x + i + lanes), vm));
    const auto e2 = term(hn::Sub(hn::LoadU(d, x + i + 2 * lanes), vm));
    const auto e3 = term(hn::Sub(hn::LoadU(d, x + i + 3 * lanes), vm));
    if constexpr (kStore) {
      hn::StoreU(e0, d, y + i);
      hn::StoreU(e1, d, y + i + lanes);
      hn::StoreU(e2, d, y + i + 2 * lanes);
      hn::StoreU(e3, d, y + i + 3 * lanes);
    }
    s0 = hn::Add(s0, e0);
    s1 = hn::Add(s1, e1);
    s2 = hn::Add(s2, e2);
    s3 = hn::Add(s3, e3);
  }
  for (; i + lanes <= n; i += lanes) {
    const auto e = term(hn::Sub(hn::LoadU(d, x + i), vm));
    if constexpr (kStore) hn::StoreU(e, d, y + i);
    s0 = hn::Add(s0, e);
  }
  if (i < n) {
    const auto v = hn::Sub(load_tail_or(d, x + i, n - i, kMinusInfinity<T>), vm);
    const auto e = term(v);
    if constexpr (kStore) StoreTail(e, d, y + i, n - i);
    s1 = hn::Add(s1, e);
  }
  return static_cast<double>(SumLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
}

// for (i < n) sum += x[i]; n is at most kExpBlock.
template <class T>
HWY_INLINE double sum_block(const T* x, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto s0 = hn::Zero(d), s1 = s0;
  std::int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    s0 = hn::Add(s0, hn::LoadU(d, x + i));
    s1 = hn::Add(s1, hn::LoadU(d, x + i + lanes));
  }
  for (; i + lanes <= n; i += lanes) s0 = hn::Add(s0, hn::LoadU(d, x + i));
  if (i < n) s1 = hn::Add(s1, LoadTail(d, x + i, n - i));
  return static_cast<double>(SumLanes(d, hn::Add(s0, s1)));
}

// The row's maximum m, the sum of exp(x - m), and the sum of x where asked for.
template <class T>
struct RowSums {
  T max = kMinusInfinity<T>;
  double exp = 0;  // at least 1; 0 if every element is -inf; NaN if one is NaN or +inf
  double plain = 0;
};

// Adds a block to the sums of a row whose maximum is known. `next`: see sum_exp_block().
template <bool kPlain, class T>
HWY_INLINE void add_block(const T* x, std::int64_t n, RowSums<T>& r, const T* next) {
  if (r.max == kMinusInfinity<T>) {
    if (has_nan(x, n)) r.exp = std::numeric_limits<double>::quiet_NaN();
  } else {
    r.exp += sum_exp_block<false, T>(x, n, r.max, nullptr, next);
  }
  if constexpr (kPlain) r.plain += sum_block(x, n);
}

// One pass over memory: the sum so far is scaled whenever a block raises the maximum (Milakov and
// Gimelshein 2018).
template <bool kPlain, class T>
HWY_INLINE RowSums<T> row_sums(const T* x, std::int64_t n) {
  RowSums<T> r;
  for (std::int64_t b = 0; b < n; b += kExpBlock) {
    const std::int64_t count = std::min(kExpBlock, n - b);
    const T block_max = max_of(x + b, count);
    if (block_max > r.max) {
      if (r.exp != 0)
        r.exp *= std::exp(static_cast<double>(r.max) - static_cast<double>(block_max));
      r.max = block_max;
    }
    add_block<kPlain>(x + b, count, r, x + b + kExpBlock);
  }
  return r;
}

// Rows that are worked on together, step by step: the last instructions of a row's step are a chain
// of shuffles, which the next row's step need not wait for. `elements` of each row, in all arrays,
// stay in the first-level cache.
constexpr std::int64_t kMostRows = 16;
inline std::int64_t rows_together(std::int64_t elements) {
  return std::clamp<std::int64_t>(2 * kExpBlock / std::max<std::int64_t>(elements, 1), 1,
                                  kMostRows);
}

// row_sums of at most rows_together(cols) rows.
template <bool kPlain, class T>
HWY_INLINE void sums_of_rows(const T* x, std::int64_t rows, std::int64_t cols, RowSums<T>* sums) {
  if (cols > kExpBlock) {
    for (std::int64_t r = 0; r < rows; ++r) sums[r] = row_sums<kPlain>(x + r * cols, cols);
    return;
  }
  for (std::int64_t r = 0; r < rows; ++r) sums[r] = {.max = max_of(x + r * cols, cols)};
  for (std::int64_t r = 0; r < rows; ++r) {
    add_block<kPlain>(x + r * cols, cols, sums[r], x + (rows + r) * cols);
  }
}

}  // namespace
}  // namespace norma::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
