// Pieces of attention on one tile: small products, 2^x, packing. Include it behind hwy/highway.h in
// a file that is compiled once an instruction set.
#if defined(NORMA_KERNELS_ATTENTION_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMA_KERNELS_ATTENTION_TILE_INL_H_
#undef NORMA_KERNELS_ATTENTION_TILE_INL_H_
#else
#define NORMA_KERNELS_ATTENTION_TILE_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "core/kernels/math-inl.h"
#include "core/kernels/tail-inl.h"
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace norma::kernels::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// Rows of a product that are computed together: their sums fill half of the registers.
constexpr int kRows = HWY_TARGET <= HWY_AVX3 ? 8 : 4;

// Of a row r only the indices r + first .. r + last count; the others are known to be 0 or not
// read.
struct Band {
  std::int64_t first = -(std::int64_t{1} << 40);
  std::int64_t last = std::int64_t{1} << 40;
};

// for r < R, n < V * lanes: c[r][n] (+)= sum over k0 <= k < k1 of a[r][k] * b[k][n];
// kTransposed: a[k][r] in the place of a[r][k].
template <int R, int V, bool kTransposed, class T>
HWY_INLINE void Micro(const T* HWY_RESTRICT a, std::int64_t lda, const T* HWY_RESTRICT b,
                      std::int64_t ldb, std::int64_t k0, std::int64_t k1, bool accumulate,
                      T* HWY_RESTRICT c, std::int64_t ldc) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  hn::Vec<decltype(d)> sums[R][V];
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) {
      sums[r][v] = accumulate ? hn::LoadU(d, c + r * ldc + v * lanes) : hn::Zero(d);
    }
  }
  for (std::int64_t k = k0; k < k1; ++k) {
    hn::Vec<decltype(d)> row[V];
    for (int v = 0; v < V; ++v) row[v] = hn::LoadU(d, b + k * ldb + v * lanes);
    for (int r = 0; r < R; ++r) {
      const auto factor = hn::Set(d, kTransposed ? a[k * lda + r] : a[r * lda + k]);
      for (int v = 0; v < V; ++v) sums[r][v] = hn::MulAdd(factor, row[v], sums[r][v]);
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) hn::StoreU(sums[r][v], d, c + r * ldc + v * lanes);
  }
}

// A product c (rows x cols) (+)= a (rows x inner) b (inner x cols), where b and c are padded to
// whole vectors. Row r only needs the columns in its band of `cols_band`, and only the inner
// indices in its band of `inner_band` contribute.
template <class T>
struct Product {
  const T* a;
  std::int64_t lda;
  const T* b;
  std::int64_t ldb;
  T* c;
  std::int64_t ldc;
  std::int64_t rows, cols, inner;
  bool accumulate = false;
  Band cols_band{}, inner_band{};
};

template <int R, bool kTransposed, class T>
HWY_INLINE void RowPanel(const Product<T>& p, std::int64_t r) {
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  const std::int64_t k0 = HWY_MAX(std::int64_t{0}, r + p.inner_band.first);
  const std::int64_t k1 = HWY_MIN(p.inner, r + R - 1 + p.inner_band.last + 1);
  const std::int64_t n0 = HWY_MAX(std::int64_t{0}, r + p.cols_band.first) / lanes * lanes;
  const std::int64_t n1 = HWY_MIN(p.cols, r + R - 1 + p.cols_band.last + 1);
  const T* a = p.a + (kTransposed ? r : r * p.lda);
  std::int64_t n = n0;
  for (; n + lanes < n1; n += 2 * lanes) {
    Micro<R, 2, kTransposed>(a, p.lda, p.b + n, p.ldb, k0, k1, p.accumulate, p.c + r * p.ldc + n,
                             p.ldc);
  }
  if (n < n1) {
    Micro<R, 1, kTransposed>(a, p.lda, p.b + n, p.ldb, k0, k1, p.accumulate, p.c + r * p.ldc + n,
                             p.ldc);
  }
}

template <bool kTransposed, class T>
HWY_NOINLINE void Multiply(const Product<T>& p) {
  std::int64_t r = 0;
  for (; r + kRows <= p.rows; r += kRows) RowPanel<kRows, kTransposed>(p, r);
  if constexpr (kRows > 4) {
    for (; r + 4 <= p.rows; r += 4) RowPanel<4, kTransposed>(p, r);
  }
  for (; r + 2 <= p.rows; r += 2) RowPanel<2, kTransposed>(p, r);
  for (; r < p.rows; ++r) RowPanel<1, kTransposed>(p, r);
}

// 2^x for x below 127, 0 for x below -126; NaN stays. Relative error 1.1e-7, measured: x = n + f
// with n the nearest whole number, or sixteenth where that is looked up, and a minimax polynomial
// of 2^f (relative error in exact numbers 1.9e-9). See Note [Tables in registers].
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> exp2(D d, hn::Vec<D> x) {
  if constexpr (sizeof(T) == 8) {
    const auto y = hn::Exp(d, hn::Mul(x, hn::Set(d, 0.693147180559945309)));
    // Highway's Exp gives 0 for NaN.
    return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -1000.0)), hn::IfThenElse(hn::Eq(x, x), y, x));
  } else {
    const auto magic = hn::Set(d, kStepMagic);
    const auto shifted = hn::MulAdd(x, hn::Set(d, kSteps), magic);
    const auto f = hn::NegMulAdd(hn::Sub(shifted, magic), hn::Set(d, 1.0f / kSteps), x);
    const auto less_one = hn::Mul(
        f, kHasTables ? polynomial(d, f, 0.0555053028f, 0.240234287f, 0.693147181f)
                      : polynomial(d, f, 0.000153458120029f, 0.00133999312191f, 0.00961848895711f,
                                   0.0555032877697f, 0.240226468906f, 0.693147205737f));
    const auto power = power_of_steps(d, shifted);
    return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -126.0f)), hn::MulAdd(less_one, power, power));
  }
}

// Asks for `rows` rows: those of one head lie far apart.
template <class T>
HWY_INLINE void PrefetchRows(const T* from, std::int64_t stride, std::int64_t rows,
                             std::int64_t width) {
  for (std::int64_t i = 0; i < rows; ++i, from += stride) PrefetchRun(from, width);
}

// for i < rows, e < width: to[i * ld + e] = factor * from[i * stride + e]; zero up to ld.
template <class T>
HWY_INLINE void PackRows(const T* HWY_RESTRICT from, std::int64_t stride, std::int64_t rows,
                         std::int64_t width, T factor, T* HWY_RESTRICT to, std::int64_t ld) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto f = hn::Set(d, factor);
  for (std::int64_t i = 0; i < rows; ++i, from += stride, to += ld) {
    std::int64_t e = 0;
    for (; e + lanes <= width; e += lanes)
      hn::StoreU(hn::Mul(f, hn::LoadU(d, from + e)), d, to + e);
    if (e < width) hn::StoreU(hn::Mul(f, LoadTail(d, from + e, width - e)), d, to + e);
  }
}

// for i < rows, e < width: to[i * stride + e] (+)= factor * from[i * ld + e].
template <class T>
HWY_INLINE void UnpackRows(const T* HWY_RESTRICT from, std::int64_t ld, std::int64_t rows,
                           std::int64_t width, T factor, bool accumulate, T* HWY_RESTRICT to,
                           std::int64_t stride) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto f = hn::Set(d, factor);
  for (std::int64_t i = 0; i < rows; ++i, from += ld, to += stride) {
    for (std::int64_t e = 0; e < width; e += lanes) {
      const std::int64_t n = HWY_MIN(lanes, width - e);
      auto v = hn::Mul(f, hn::LoadU(d, from + e));
      if (n == lanes) {
        if (accumulate) v = hn::Add(v, hn::LoadU(d, to + e));
        hn::StoreU(v, d, to + e);
      } else {
        if (accumulate) v = hn::Add(v, LoadTail(d, to + e, n));
        StoreTail(v, d, to + e, n);
      }
    }
  }
}

// for i < rows, e < width: to[e * ld + i] = from[i * stride + e]; zero for rows <= i < ld.
template <class T>
HWY_INLINE void PackTransposed(const T* HWY_RESTRICT from, std::int64_t stride, std::int64_t rows,
                               std::int64_t width, T* HWY_RESTRICT to, std::int64_t ld) {
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  if constexpr (sizeof(T) == 4) {
    // Blocks of 4 x 4 in registers.
    const hn::FixedTag<T, 4> d4;
    const hn::Repartition<double, decltype(d4)> dw;
    for (; i + 4 <= rows; i += 4) {
      const T* HWY_RESTRICT p = from + i * stride;
      std::int64_t e = 0;
      for (; e + 4 <= width; e += 4) {
        const auto a = hn::LoadU(d4, p + e), b = hn::LoadU(d4, p + stride + e);
        const auto c = hn::LoadU(d4, p + 2 * stride + e), g = hn::LoadU(d4, p + 3 * stride + e);
        const auto ab0 = hn::BitCast(dw, hn::InterleaveLower(d4, a, b));
        const auto ab1 = hn::BitCast(dw, hn::InterleaveUpper(d4, a, b));
        const auto cg0 = hn::BitCast(dw, hn::InterleaveLower(d4, c, g));
        const auto cg1 = hn::BitCast(dw, hn::InterleaveUpper(d4, c, g));
        T* HWY_RESTRICT q = to + e * ld + i;
        hn::StoreU(hn::BitCast(d4, hn::InterleaveLower(dw, ab0, cg0)), d4, q);
        hn::StoreU(hn::BitCast(d4, hn::InterleaveUpper(dw, ab0, cg0)), d4, q + ld);
        hn::StoreU(hn::BitCast(d4, hn::InterleaveLower(dw, ab1, cg1)), d4, q + 2 * ld);
        hn::StoreU(hn::BitCast(d4, hn::InterleaveUpper(dw, ab1, cg1)), d4, q + 3 * ld);
      }
      for (; e < width; ++e) {
        for (int r = 0; r < 4; ++r) to[e * ld + i + r] = p[r * stride + e];
      }
    }
  }
#endif
  for (; i < rows; ++i) {
    for (std::int64_t e = 0; e < width; ++e) to[e * ld + i] = from[i * stride + e];
  }
  for (std::int64_t e = 0; e < width && rows < ld; ++e) {
    std::fill(to + e * ld + rows, to + e * ld + ld, T{0});
  }
}

}  // namespace
}  // namespace norma::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
