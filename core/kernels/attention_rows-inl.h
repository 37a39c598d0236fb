// Softmax of the rows of a tile of attention, and its backward. Include it behind hwy/highway.h in
// a file that is compiled once an instruction set.
#if defined(NORMA_KERNELS_ATTENTION_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMA_KERNELS_ATTENTION_ROWS_INL_H_
#undef NORMA_KERNELS_ATTENTION_ROWS_INL_H_
#else
#define NORMA_KERNELS_ATTENTION_ROWS_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/kernels/attention_task.h"
#include "core/kernels/attention_tile-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace norma::kernels::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// A tile: queries i0 .. i0 + rows - 1 against keys j0 .. j0 + cols - 1.
struct Tile {
  std::int64_t i0, rows, j0, cols;
};

// The keys that row r of a tile may see, as columns of the tile.
template <class T>
HWY_INLINE Band KeysOfQuery(const AttentionTask<T>& a, const Tile& t) {
  const std::int64_t diagonal = t.i0 + a.shape.keys - a.shape.queries - t.j0;
  Band b;
  if (a.shape.window > 0) {
    b.first = diagonal - a.shape.window + 1;
    b.last = diagonal + a.shape.window - 1;
  }
  if (a.shape.causal) b.last = diagonal;
  return b;
}
// The queries that may see column r of a tile, as rows of the tile.
template <class T>
HWY_INLINE Band QueriesOfKey(const AttentionTask<T>& a, const Tile& t) {
  const Band keys = KeysOfQuery(a, t);
  return {-keys.last, -keys.first};
}

// Raw products x of the keys j .. j + lanes - 1 (`n` exist) become logits, in units of ln 2.
// `slope` gets the derivative of the cap.
template <class D, class T>
HWY_INLINE hn::Vec<D> Logit(D d, const AttentionTask<T>& a, hn::Vec<D> x, const T* bias,
                            const T* mask, std::int64_t j, std::int64_t n, hn::Vec<D>* slope) {
  if (a.shape.softcap > 0) {
    const auto t = hn::Tanh(d, x);
    if (slope) *slope = hn::NegMulAdd(t, t, hn::Set(d, T{1}));
    x = hn::Mul(hn::Set(d, static_cast<T>(a.shape.softcap / kLn2)), t);
  }
  if (bias) {
    const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const auto b = n >= lanes ? hn::LoadU(d, bias + j) : LoadTail(d, bias + j, n);
    x = hn::MulAdd(b, hn::Set(d, static_cast<T>(1 / kLn2)), x);
  }
  if (mask) x = hn::Add(x, hn::LoadU(d, mask + j));
  return x;
}

// x with -inf in the lanes whose column, counted from j, is outside of [lo, hi).
template <class D>
HWY_INLINE hn::Vec<D> Hide(D d, hn::Vec<D> x, std::int64_t j, std::int64_t lo, std::int64_t hi) {
  using T = hn::TFromD<D>;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto hidden = hn::Set(d, -std::numeric_limits<T>::infinity());
  if (j + lanes > hi) {
    x = hn::IfThenElse(hn::FirstN(d, static_cast<std::size_t>(hi - j)), x, hidden);
  }
  if (j < lo) x = hn::IfThenElse(hn::FirstN(d, static_cast<std::size_t>(lo - j)), hidden, x);
  return x;
}

// What rows need beside the tile.
template <class T>
struct RowInputs {
  const T* bias = nullptr;  // at column 0 of the tile, or null
  const T* mask = nullptr;  // likewise
  T* keep = nullptr;
  std::int64_t row = 0;  // (batch, head, query) as one index, for dropout
  std::int64_t j0 = 0;
  T* largest = nullptr;  // takes the largest raw product that counts, or null
};

// The largest of the raw products s[0, cols) whose logit is not -inf; NaN once there was one.
template <class T>
HWY_NOINLINE void LargestProduct(const AttentionTask<T>& a, const RowInputs<T>& in,
                                 std::int64_t cols, std::int64_t lo, std::int64_t hi,
                                 const T* HWY_RESTRICT s) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  lo = HWY_MAX(lo, std::int64_t{0});
  hi = HWY_MIN(hi, cols);
  const auto hidden = hn::Set(d, -std::numeric_limits<T>::infinity());
  auto most = hidden;
  for (std::int64_t j = lo / lanes * lanes; j < hi; j += lanes) {
    const auto raw = hn::LoadU(d, s + j);
    auto x = Logit(d, a, raw, in.bias, in.mask, j, a.shape.keys - in.j0 - j, nullptr);
    x = Hide(d, x, j, lo, hi);
    const auto counted = hn::IfThenElse(hn::Eq(x, hidden), hidden, raw);
    most = hn::IfThenElse(hn::Or(hn::IsNaN(most), hn::Gt(most, counted)), most, counted);
  }
  const bool numbers = hn::AllFalse(d, hn::IsNaN(most));
  const T row = numbers ? MaxLane(d, most) : std::numeric_limits<T>::quiet_NaN();
  if (!numbers || row > *in.largest) *in.largest = row;
}

// s[0, cols) = 2^(logit - max), 0 outside of [lo, hi); max and sum go on from earlier blocks.
// Returns the factor for what was summed before.
template <class T>
HWY_INLINE T ForwardRow(const AttentionTask<T>& a, const RowInputs<T>& in, std::int64_t cols,
                        std::int64_t lo, std::int64_t hi, T* HWY_RESTRICT s, T& max, T& sum) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t padded = (cols + lanes - 1) / lanes * lanes;
  lo = HWY_MAX(lo, std::int64_t{0});
  hi = HWY_MIN(hi, cols);
  if (hi <= lo) {
    std::fill(s, s + padded, T{0});
    return T{1};
  }
  if (in.largest) LargestProduct(a, in, cols, lo, hi, s);
  const std::int64_t v0 = lo / lanes * lanes, v1 = (hi + lanes - 1) / lanes * lanes;
  const auto infinity = hn::Set(d, -std::numeric_limits<T>::infinity());
  const bool plain = a.shape.softcap <= 0 && !in.bias && !in.mask;
  // for j: s[j] = logit(s[j]), m = max(m, s[j])
  auto m0 = infinity, m1 = infinity;
  std::int64_t j = v0;
  if (plain && v1 - v0 > lanes) {
    if (lo > v0) hn::StoreU(Hide(d, hn::LoadU(d, s + v0), v0, lo, v1), d, s + v0);
    const std::int64_t last = v1 - lanes;
    if (hi < v1) hn::StoreU(Hide(d, hn::LoadU(d, s + last), last, v0, hi), d, s + last);
    for (; j + 2 * lanes <= v1; j += 2 * lanes) {
      m0 = hn::Max(m0, hn::LoadU(d, s + j));
      m1 = hn::Max(m1, hn::LoadU(d, s + j + lanes));
    }
    if (j < v1) m0 = hn::Max(m0, hn::LoadU(d, s + j));
  } else {
    for (; j < v1; j += lanes) {
      auto x = hn::LoadU(d, s + j);
      x = Logit(d, a, x, in.bias, in.mask, j, a.shape.keys - in.j0 - j, nullptr);
      x = Hide(d, x, j, lo, hi);
      hn::StoreU(x, d, s + j);
      m0 = hn::Max(m0, x);
    }
  }
  const T before = max;
  max = HWY_MAX(max, MaxLane(d, hn::Max(m0, m1)));
  if (max == -std::numeric_limits<T>::infinity()) {
    // Nothing counts, unless a NaN got lost in the maximum.
    if (std::any_of(s + lo, s + hi, [](T v) { return std::isnan(v); })) {
      sum = std::numeric_limits<T>::quiet_NaN();
    }
    std::fill(s, s + padded, T{0});
    return T{1};
  }
  const T factor = before == max ? T{1} : std::exp2(before - max);
  std::fill(s, s + v0, T{0});
  std::fill(s + v1, s + padded, T{0});
  // for j: s[j] = 2^(s[j] - max), sum += s[j]
  const auto vm = hn::Set(d, max);
  auto p0 = hn::Zero(d), p1 = p0;
  for (j = v0; j + 2 * lanes <= v1; j += 2 * lanes) {
    const auto e0 = exp2(d, hn::Sub(hn::LoadU(d, s + j), vm));
    const auto e1 = exp2(d, hn::Sub(hn::LoadU(d, s + j + lanes), vm));
    hn::StoreU(e0, d, s + j);
    hn::StoreU(e1, d, s + j + lanes);
    p0 = hn::Add(p0, e0);
    p1 = hn::Add(p1, e1);
  }
  if (j < v1) {
    const auto e0 = exp2(d, hn::Sub(hn::LoadU(d, s + j), vm));
    hn::StoreU(e0, d, s + j);
    p0 = hn::Add(p0, e0);
  }
  sum = sum * factor + SumLanes(d, hn::Add(p0, p1));
  if (a.shape.dropout > 0) {
    // Aligned to the blocks of random numbers, which hold four.
    const std::int64_t begin = v0 / 4 * 4;
    dropout_row(a.shape, in.row, in.j0 + begin, in.j0 + hi, in.keep);
    for (std::int64_t c = begin; c < hi; ++c) s[c] *= in.keep[c - begin];
  }
  return factor;
}

// From raw products s and dp: s = p with dropout, dp = the gradient of the raw product over its
// factor; dbias += the gradient of the logit.
template <class T>
HWY_INLINE void BackwardRow(const AttentionTask<T>& a, const RowInputs<T>& in, std::int64_t cols,
                            std::int64_t lo, std::int64_t hi, T max, T inverse, T delta,
                            T* HWY_RESTRICT dbias, T* HWY_RESTRICT s, T* HWY_RESTRICT dp) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t padded = (cols + lanes - 1) / lanes * lanes;
  lo = HWY_MAX(lo, std::int64_t{0});
  hi = HWY_MAX(lo, HWY_MIN(hi, cols));
  // Dropout begins at a multiple of 4, where vectors may be shorter.
  const std::int64_t step = HWY_MAX(lanes, std::int64_t{4});
  const std::int64_t v0 = lo / step * step, v1 = hi == lo ? v0 : (hi + lanes - 1) / lanes * lanes;
  // The products begin at a whole vector, which may lie behind v0; what stands before is anything.
  const std::int64_t computed = lo / lanes * lanes;
  std::fill(s, s + computed, T{0});
  std::fill(s + v1, s + padded, T{0});
  std::fill(dp, dp + computed, T{0});
  std::fill(dp + v1, dp + padded, T{0});
  if (hi == lo) return;
  const auto vm = hn::Set(d, max), vi = hn::Set(d, inverse), vd = hn::Set(d, delta);
  const bool plain = a.shape.softcap <= 0 && !in.bias && !in.mask && a.shape.dropout <= 0 && !dbias;
  if (plain) {
    // for j: p = 2^(s[j] - max) * inverse, dp[j] = p * (dp[j] - delta), s[j] = p
    for (std::int64_t j = v0; j < v1; j += lanes) {
      const auto x = Hide(d, hn::LoadU(d, s + j), j, lo, hi);
      const auto p = hn::Mul(exp2(d, hn::Sub(x, vm)), vi);
      hn::StoreU(p, d, s + j);
      hn::StoreU(hn::Mul(p, hn::Sub(hn::LoadU(d, dp + j), vd)), d, dp + j);
    }
    return;
  }
  if (a.shape.dropout > 0) dropout_row(a.shape, in.row, in.j0 + v0, in.j0 + v1, in.keep);
  for (std::int64_t j = v0; j < v1; j += lanes) {
    auto slope = hn::Set(d, T{1});
    const std::int64_t left = a.shape.keys - in.j0 - j;
    auto x = Logit(d, a, hn::LoadU(d, s + j), in.bias, in.mask, j, left, &slope);
    x = Hide(d, x, j, lo, hi);
    const auto p = hn::Mul(exp2(d, hn::Sub(x, vm)), vi);
    auto g = hn::LoadU(d, dp + j), kept = p;
    if (a.shape.dropout > 0) {
      const auto keep = hn::LoadU(d, in.keep + j - v0);
      g = hn::Mul(g, keep);
      kept = hn::Mul(p, keep);
    }
    hn::StoreU(kept, d, s + j);
    const auto dl = hn::Mul(p, hn::Sub(g, vd));
    if (dbias) {
      if (left >= lanes) {
        hn::StoreU(hn::Add(hn::LoadU(d, dbias + j), dl), d, dbias + j);
      } else {
        StoreTail(hn::Add(LoadTail(d, dbias + j, left), dl), d, dbias + j, left);
      }
    }
    hn::StoreU(hn::Mul(dl, slope), d, dp + j);
  }
}

}  // namespace
}  // namespace norma::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
