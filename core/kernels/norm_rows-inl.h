// The passes over rows, forward and backward.
//
// Included once a target.
#if defined(NORMA_NORM_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMA_NORM_ROWS_INL_H_
#undef NORMA_NORM_ROWS_INL_H_
#else
#define NORMA_NORM_ROWS_INL_H_
#endif

#include <cstdint>

#include "core/kernels/moments.h"
#include "core/kernels/norm_rows_task.h"
#include "core/kernels/run_moments-inl.h"
#include "core/kernels/tail-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace norma::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Mean and variance of a run that is longer than the first-level cache, in one pass over it: those
// of its blocks, put together as Chan, Golub and LeVeque (1983) do.
template <class D, class T>
HWY_INLINE Moments LongMoments(D d, const T* HWY_RESTRICT x, std::int64_t n) {
  Moments m;
  double squares = 0;
  for (std::int64_t b = 0; b < n; b += kBlock) {
    const std::int64_t count = HWY_MIN(kBlock, n - b);
    Moments block;
    block.mean = MeanOf(d, x + b, count);
    FinishMoments(d, x + b, count, block);
    const double difference = block.mean - m.mean;
    const double some = static_cast<double>(count), all = static_cast<double>(b + count);
    squares += some * block.var;
    m.mean += difference * (some / all);
    if (b > 0) squares += difference * difference * some * (static_cast<double>(b) / all);
  }
  m.var = squares / static_cast<double>(n);
  return m;
}

// Rows that take their steps together: the sums of one are a chain of few instructions at their
// ends, which the others need not wait for.
constexpr std::int64_t kMostRows = 8;
HWY_INLINE std::int64_t RowsTogether(std::int64_t cols) {
  return HWY_MAX(std::int64_t{1}, HWY_MIN(kMostRows, kBlock / cols));
}

// The moments of `rows` rows, at most RowsTogether() of them.
template <class D, class T>
HWY_INLINE void MomentsOfRows(D d, const T* HWY_RESTRICT x, std::int64_t rows, const RowsShape& s,
                              Moments* HWY_RESTRICT m) {
  const std::int64_t n = s.counted;
  if (!s.centre) {
    for (std::int64_t r = 0; r < rows; ++r) {
      m[r] = {};
      m[r].var = SumOf(d, x + r * s.cols, n, [&](auto v) HWY_ATTR { return hn::Mul(v, v); }) /
                 static_cast<double>(n);
    }
  } else if (n > kBlock) {
    for (std::int64_t r = 0; r < rows; ++r) m[r] = LongMoments(d, x + r * s.cols, n);
  } else {
    for (std::int64_t r = 0; r < rows; ++r) m[r].mean = MeanOf(d, x + r * s.cols, n);
    for (std::int64_t r = 0; r < rows; ++r) FinishMoments(d, x + r * s.cols, n, m[r]);
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    if (in_range<T>(m[r].var, s.eps)) {
      m[r].rstd = reciprocal_deviation(m[r].var, s.eps);
    } else {
      const T* values = x + r * s.cols;
      m[r] = scaled_moments(n, s.centre, s.eps, [&](std::int64_t i) { return values[i]; });
    }
  }
}

// y = (x - mean) * rstd * gain + bias of row r. What lies at `next` comes from memory meanwhile.
template <class D, class T>
HWY_INLINE void WriteRow(D d, const RowsForward<T>& a, std::int64_t r, T row_mean, T row_rstd,
                         const T* next) {
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const RowsShape& s = a.shape;
  const std::int64_t per_row = s.cols / s.space;
  const T* HWY_RESTRICT x = a.x + r * s.cols;
  T* HWY_RESTRICT y = a.y + r * s.cols;
  const auto mean = hn::Set(d, row_mean), rstd = hn::Set(d, row_rstd);
  const T* HWY_RESTRICT gain = a.gain + (r % s.groups) * per_row;
  const T* HWY_RESTRICT bias = a.bias ? a.bias + (r % s.groups) * per_row : nullptr;
  if (s.space == 1) {
    // for (i = 0; i < cols; ++i) y[i] = (x[i] - mean) * rstd * gain[i] + bias[i];
    std::int64_t i = 0;
    for (; i + lanes <= s.cols; i += lanes) {
      hwy::Prefetch(next + i);
      const auto z = hn::Mul(hn::Sub(hn::LoadU(d, x + i), mean), rstd);
      const auto g = hn::LoadU(d, gain + i);
      const auto v = bias ? hn::MulAdd(z, g, hn::LoadU(d, bias + i)) : hn::Mul(z, g);
      StoreResult(v, d, y + i, a.past);
    }
    if (i < s.cols) {
      const std::int64_t n = s.cols - i;
      const auto z = hn::Mul(hn::Sub(LoadTail(d, x + i, n), mean), rstd);
      const auto b = bias ? LoadTail(d, bias + i, n) : hn::Zero(d);
      StoreTail(hn::MulAdd(z, LoadTail(d, gain + i, n), b), d, y + i, n);
    }
    return;
  }
  for (std::int64_t c = 0; c < per_row; ++c, x += s.space, y += s.space, next += s.space) {
    // for (i = 0; i < space; ++i) y[i] = (x[i] - mean) * rstd * gain[c] + bias[c];
    const auto g = hn::Set(d, gain[c]);
    const auto b = hn::Set(d, bias ? bias[c] : T{0});
    std::int64_t i = 0;
    for (; i + lanes <= s.space; i += lanes) {
      hwy::Prefetch(next + i);
      const auto z = hn::Mul(hn::Sub(hn::LoadU(d, x + i), mean), rstd);
      StoreResult(hn::MulAdd(z, g, b), d, y + i, a.past);
    }
    if (i < s.space) {
      const auto z = hn::Mul(hn::Sub(LoadTail(d, x + i, s.space - i), mean), rstd);
      StoreTail(hn::MulAdd(z, g, b), d, y + i, s.space - i);
    }
  }
}

// Rows begin..end-1.
template <class T>
HWY_NOINLINE void Forward(const RowsForward<T>& a, std::int64_t begin, std::int64_t end) {
  const hn::ScalableTag<T> d;
  const RowsShape& s = a.shape;
  const std::int64_t together = RowsTogether(s.cols);
  for (std::int64_t first = begin; first < end; first += together) {
    const std::int64_t stop = HWY_MIN(end, first + together);
    Moments m[kMostRows];
    if (!a.known) MomentsOfRows(d, a.x + first * s.cols, stop - first, s, m);
    for (std::int64_t r = first; r < stop; ++r) {
      T mean = static_cast<T>(m[r - first].mean), rstd = static_cast<T>(m[r - first].rstd);
      if (a.known) {
        mean = a.mean ? a.mean[r] : T{0};
        rstd = a.rstd[r];
      } else {
        if (a.mean) a.mean[r] = mean;
        if (a.var) a.var[r] = static_cast<T>(m[r - first].var);
        a.rstd[r] = rstd;
      }
      const std::int64_t next = r + together < end ? r + together : r;
      WriteRow(d, a, r, mean, rstd, a.x + next * s.cols);
    }
  }
  FlushStores(a.past);
}

// for (i = 0; i < n; ++i) dx[i] = rstd * (dy[i] * gain[i] - c1 - (x[i] - mean) * rstd * c2);
// or dx[i] += ... ; gain_at(i, n) gives the gains of the lanes at i. What lies `ahead` elements on
// in x comes from memory meanwhile.
template <class D, class T, class G>
HWY_INLINE void WriteDx(D d, const RowsBackward<T>& a, std::int64_t at, std::int64_t n,
                        const G& gain_at, T mean, T rstd, T c1, T c2, std::int64_t ahead) {
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const T* HWY_RESTRICT x = a.x + at;
  const T* HWY_RESTRICT dy = a.dy + at;
  T* HWY_RESTRICT dx = a.dx + at;
  const auto vm = hn::Set(d, mean), vr = hn::Set(d, rstd), v1 = hn::Set(d, c1), v2 = hn::Set(d, c2);
  const auto value = [&](auto g, auto xv) HWY_ATTR {
    const auto z = hn::Mul(hn::Sub(xv, vm), vr);
    return hn::Mul(vr, hn::Sub(g, hn::MulAdd(z, v2, v1)));
  };
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hwy::Prefetch(x + i + ahead);
    const auto g = hn::Mul(hn::LoadU(d, dy + i), gain_at(i, lanes));
    auto v = value(g, hn::LoadU(d, x + i));
    if (a.accumulate_dx) v = hn::Add(hn::LoadU(d, dx + i), v);
    StoreResult(v, d, dx + i, a.past);
  }
  if (i < n) {
    const std::int64_t k = n - i;
    const auto g = hn::Mul(LoadTail(d, dy + i, k), gain_at(i, k));
    const auto v = value(g, LoadTail(d, x + i, k));
    StoreTail(a.accumulate_dx ? hn::Add(LoadTail(d, dx + i, k), v) : v, d, dx + i, k);
  }
}

// Elements, at least, that are asked for ahead of their use.
constexpr std::int64_t kAhead = 1024;

// For the elements of a row, z = (x - mean) * rstd, g = dy * gain: sum += g; product += g z;
// dw += dy z; db += dy, or = where `fresh`. What lies `ahead` elements on in dy comes from memory
// meanwhile.
template <bool kGains, class D, class T>
HWY_INLINE Products AddProducts(D d, const RowsBackward<T>& a, std::int64_t row,
                                const T* HWY_RESTRICT gain, T* HWY_RESTRICT dw, T* HWY_RESTRICT db,
                                [[maybe_unused]] bool fresh, std::int64_t ahead) {
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d)), cols = a.shape.cols;
  const T* HWY_RESTRICT x = a.x + row * cols;
  const T* HWY_RESTRICT dy = a.dy + row * cols;
  const auto mean = hn::Set(d, a.mean ? a.mean[row] : T{0}), rstd = hn::Set(d, a.rstd[row]);
  Products all;
  for (std::int64_t b = 0; b < cols; b += kBlock) {
    const std::int64_t stop = HWY_MIN(cols, b + kBlock);
    // Two of each, for the vectors in turn: one would wait for itself.
    auto sum = hn::Zero(d), other_sum = sum, product = sum, other_product = sum;
    const auto step = [&](std::int64_t i, auto& p, auto& q, const auto& load, const auto& store)
                          HWY_ATTR {
                            hwy::Prefetch(dy + i + ahead);
                            const auto g = load(dy + i);
                            const auto z = hn::Mul(hn::Sub(load(x + i), mean), rstd);
                            const auto gg = hn::Mul(g, load(gain + i));
                            if constexpr (kGains) {
                              store(fresh ? hn::Mul(g, z) : hn::MulAdd(g, z, load(dw + i)), dw + i);
                              store(fresh ? g : hn::Add(g, load(db + i)), db + i);
                            }
                            p = hn::Add(p, gg);
                            q = hn::MulAdd(gg, z, q);
                          };
    const auto load = [&](const T* p) HWY_ATTR { return hn::LoadU(d, p); };
    const auto store = [&](hn::Vec<D> v, T* p) HWY_ATTR { hn::StoreU(v, d, p); };
    std::int64_t i = b;
    for (; i + 2 * lanes <= stop; i += 2 * lanes) {
      step(i, sum, product, load, store);
      step(i + lanes, other_sum, other_product, load, store);
    }
    for (; i < stop; i += lanes) {
      const std::int64_t k = HWY_MIN(lanes, stop - i);
      step(
          i, sum, product, [&](const T* p) HWY_ATTR { return LoadTail(d, p, k); },
          [&](hn::Vec<D> v, T* p) HWY_ATTR { StoreTail(v, d, p, k); });
    }
    all.sum += static_cast<double>(SumLanes(d, hn::Add(sum, other_sum)));
    all.product += static_cast<double>(SumLanes(d, hn::Add(product, other_product)));
  }
  return all;
}

// Rows begin..end-1 where every element has its own gain. dweight and dbias are this chunk's own
// sums, `channels` each; not used unless kGains.
template <bool kGains, class T>
HWY_NOINLINE void BackwardElements(const RowsBackward<T>& a, std::int64_t begin, std::int64_t end,
                                   T* dweight, T* dbias) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const RowsShape& s = a.shape;
  const std::int64_t rows_ahead = HWY_MAX(std::int64_t{1}, kAhead / s.cols);
  for (std::int64_t r = begin; r < end; ++r) {
    const std::int64_t offset = (r % s.groups) * s.cols;
    const T* HWY_RESTRICT gain = a.gain + offset;
    const std::int64_t n = s.counted, ahead = r + rows_ahead < end ? rows_ahead * s.cols : 0;
    const Products p =
        AddProducts<kGains>(d, a, r, gain, dweight + (kGains ? offset : 0),
                            dbias + (kGains ? offset : 0), r - begin < s.groups, ahead);
    if (!a.dx) continue;
    const T mean = a.mean ? a.mean[r] : T{0}, rstd = a.rstd[r];
    const T c1 = s.centre ? static_cast<T>(p.sum / static_cast<double>(n)) : T{0};
    const T c2 = static_cast<T>(p.product / static_cast<double>(n));
    const auto gain_at = [&](std::int64_t i, std::int64_t k) HWY_ATTR {
      return k == lanes ? hn::LoadU(d, gain + i) : LoadTail(d, gain + i, k);
    };
    WriteDx(d, a, r * s.cols, n, gain_at, mean, rstd, c1, c2, ahead);
    if (n < s.cols) {
      const auto gain_behind = [&](std::int64_t i, std::int64_t k)
                                   HWY_ATTR { return gain_at(n + i, k); };
      WriteDx(d, a, r * s.cols + n, s.cols - n, gain_behind, mean, rstd, T{0}, T{0}, ahead);
    }
  }
}

// Rows begin..end-1 where `space` elements share a gain. dweight and dbias get one sum for every
// channel of every row: rows * (cols / space).
template <class T>
HWY_NOINLINE void BackwardSegments(const RowsBackward<T>& a, std::int64_t begin, std::int64_t end,
                                   T* dweight, T* dbias) {
  const hn::ScalableTag<T> d;
  const RowsShape& s = a.shape;
  const std::int64_t per_row = s.cols / s.space;
  for (std::int64_t r = begin; r < end; ++r) {
    const T* HWY_RESTRICT gain = a.gain + (r % s.groups) * per_row;
    const T mean = a.mean ? a.mean[r] : T{0};
    const auto vm = hn::Set(d, mean), vr = hn::Set(d, a.rstd[r]);
    Products sums;
    for (std::int64_t c = 0; c < per_row; ++c) {
      const std::int64_t at = r * s.cols + c * s.space;
      const auto [p, q] = ProductsOf(d, a.x + at, a.dy + at, s.space, vm, vr);
      if (dweight) {
        dweight[r * per_row + c] = static_cast<T>(q);
        dbias[r * per_row + c] = static_cast<T>(p);
      }
      sums.sum += p * static_cast<double>(gain[c]);
      sums.product += q * static_cast<double>(gain[c]);
    }
    if (!a.dx) continue;
    const double n = static_cast<double>(s.cols);
    const T c1 = s.centre ? static_cast<T>(sums.sum / n) : T{0};
    const T c2 = static_cast<T>(sums.product / n);
    const std::int64_t ahead = r + 1 < end ? s.cols : 0;
    for (std::int64_t c = 0; c < per_row; ++c) {
      const auto g = hn::Set(d, gain[c]);
      const auto gain_at = [&](std::int64_t, std::int64_t) HWY_ATTR { return g; };
      WriteDx(d, a, r * s.cols + c * s.space, s.space, gain_at, mean, a.rstd[r], c1, c2, ahead);
    }
  }
}

template <class T>
void Backward(const RowsBackward<T>& a, std::int64_t begin, std::int64_t end, T* dweight,
              T* dbias) {
  if (a.shape.space > 1) {
    BackwardSegments(a, begin, end, dweight, dbias);
  } else if (dweight) {
    BackwardElements<true>(a, begin, end, dweight, dbias);
  } else {
    BackwardElements<false>(a, begin, end, dweight, dbias);
  }
  FlushStores(a.past);
}

}  // namespace norma::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // NORMA_NORM_ROWS_INL_H_
