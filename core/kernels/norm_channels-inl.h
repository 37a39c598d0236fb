// The passes over a piece of an array: see Note [Channels in pieces] in norm_channels_task.h.
//
// Included once a target.
#if defined(NORMA_NORM_CHANNELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMA_NORM_CHANNELS_INL_H_
#undef NORMA_NORM_CHANNELS_INL_H_
#else
#define NORMA_NORM_CHANNELS_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "core/kernels/norm_channels_task.h"
#include "core/kernels/run_moments-inl.h"
#include "core/kernels/tail-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace norma::kernels::HWY_NAMESPACE {

// f(j, load, store) for the vectors of a row of n elements: with load(p) and store(v, p) for the
// lanes that there are from element j on; `past`: as StoreResult().
template <class D, class F>
HWY_INLINE void ForVectors(D d, std::int64_t n, bool past, const F& f) {
  using T = hn::TFromD<D>;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    f(
        j, [&](const T* p) HWY_ATTR { return hn::LoadU(d, p); },
        [&](hn::Vec<D> v, T* p) HWY_ATTR { StoreResult(v, d, p, past); });
  }
  if (j < n) {
    f(
        j, [&](const T* p) HWY_ATTR { return LoadTail(d, p, n - j); },
        [&](hn::Vec<D> v, T* p) HWY_ATTR { StoreTail(v, d, p, n - j); });
  }
}

// The terms of an element, added to s and q: its difference to `from` and the square of that; and,
// backward, dy and dy z.
template <class V>
HWY_INLINE void AddMoments(V x, V from, V& s, V& q) {
  const V difference = hn::Sub(x, from);
  s = hn::Add(s, difference);
  q = hn::MulAdd(difference, difference, q);
}
template <class V>
HWY_INLINE void AddProducts(V x, V dy, V mean, V rstd, V& s, V& q) {
  s = hn::Add(s, dy);
  q = hn::MulAdd(dy, hn::Mul(hn::Sub(x, mean), rstd), q);
}

// for r, j: add(r, j, load, p[j], q[j]), for few enough rows to be summed in T: kTogether rows by
// themselves, then those sums. add(r, j, load, s, s2) takes the lanes from column j on.
constexpr std::int64_t kTogether = 8;
template <class T, class F>
HWY_INLINE void SumColumns(std::int64_t rows, std::int64_t cols, const F& add, T* HWY_RESTRICT p,
                           T* HWY_RESTRICT q) {
  const hn::ScalableTag<T> d;
  std::fill_n(p, cols, T{0});
  std::fill_n(q, cols, T{0});
  for (std::int64_t r = 0; r < rows; r += kTogether) {
    const std::int64_t some = HWY_MIN(kTogether, rows - r);
    ForVectors(d, cols, false, [&](std::int64_t j, const auto& load, const auto& store) HWY_ATTR {
      auto s = hn::Zero(d), s2 = s;
      for (std::int64_t i = 0; i < some; ++i) add(r + i, j, load, s, s2);
      store(hn::Add(load(p + j), s), p + j);
      store(hn::Add(load(q + j), s2), q + j);
    });
  }
}

// Values of T as f64, as many as a vector of f64 has.
template <class DD, class T>
HWY_INLINE hn::Vec<DD> LoadWide(DD dd, const T* HWY_RESTRICT p) {
  if constexpr (sizeof(T) == sizeof(double)) {
    return hn::LoadU(dd, p);
  } else {
    return hn::PromoteTo(dd, hn::LoadU(hn::Rebind<T, DD>(), p));
  }
}

// f(j, d) for the vectors of f64 of a row of n elements, the last ones in vectors of one.
template <class F>
HWY_INLINE void ForWide(std::int64_t n, const F& f) {
  const hn::ScalableTag<double> dd;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(dd));
  std::int64_t j = 0;
  for (; j + lanes <= n; j += lanes) f(j, dd);
  for (; j < n; ++j) f(j, hn::CappedTag<double, 1>());
}

// Adds to p and q, the sums of `before` values of a column, those of `more`, p2 and q2. Forward p
// is their mean less `from`, the mean of the first piece, which keeps the digits of f64 where
// deviations are small beside it, and q their squared deviations, as Chan, Golub and LeVeque (1983)
// add them.
template <bool kBackward, class V>
HWY_INLINE void AddSums(double before, double more, V from, V p2, V q2, V& p, V& q) {
  if constexpr (kBackward) {
    p = hn::Add(p, p2);
    q = hn::Add(q, q2);
  } else {
    const hn::DFromV<V> dd;
    const double part = more / (before + more);
    const V apart = hn::Sub(hn::Sub(p2, from), p);
    p = hn::MulAdd(apart, hn::Set(dd, part), p);
    const V between = hn::Mul(hn::Mul(apart, apart), hn::Set(dd, before * part));
    q = hn::Add(q, hn::Add(q2, between));
  }
}

// The mean and the squared deviations of a column of `rows` elements, from the sums of their
// differences to `from` and of the squares of these.
template <class DD, class T>
HWY_INLINE void FinishColumns(DD dd, const T* HWY_RESTRICT from, const T* HWY_RESTRICT sums,
                              const T* HWY_RESTRICT squares, std::int64_t rows, hn::Vec<DD>& mean,
                              hn::Vec<DD>& deviations) {
  const auto inverse = hn::Set(dd, 1 / static_cast<double>(rows));
  const auto sum = LoadWide(dd, sums);
  const auto shift = hn::Mul(sum, inverse);
  mean = hn::Add(LoadWide(dd, from), shift);
  deviations = hn::NegMulAdd(sum, shift, LoadWide(dd, squares));
}

// The mean of each column of a piece, and the squared deviations from it: from the sums of the
// differences to the first row and of their squares. The first row belongs to the piece, so that
// its own squared deviation is at most the sum of all: the difference of sums loses the digits of
// one addition, and those of kRows of them where the first row is all that deviates.
template <class T>
HWY_NOINLINE void ColumnMoments(const ChannelsTask<T>& a, const Piece& p) {
  const std::int64_t stride = a.stride();
  const T* HWY_RESTRICT x = a.x + p.offset;
  HWY_ALIGN T sums[kColumns], squares[kColumns];
  SumColumns(
      p.rows(), p.cols,
      [&](std::int64_t r, std::int64_t j, const auto& load, auto& s, auto& q)
          HWY_ATTR { AddMoments(load(x + r * stride + j), load(x + j), s, q); },
      sums, squares);
  const std::int64_t at = p.down * a.columns() + p.column;
  ForWide(p.cols, [&](std::int64_t j, auto dd) HWY_ATTR {
    hn::Vec<decltype(dd)> mean, deviations;
    FinishColumns(dd, x + j, sums + j, squares + j, p.rows(), mean, deviations);
    hn::StoreU(mean, dd, a.first + at + j);
    hn::StoreU(deviations, dd, a.second + at + j);
  });
}

// Adds the moments of run r of a column, whose mean is taken already, to those of the runs before.
template <class D, class T>
HWY_INLINE void AddRun(D d, const T* HWY_RESTRICT x, std::int64_t n, std::int64_t r,
                       double run_mean, double& mean, double& squares) {
  Moments run;
  run.mean = run_mean;
  FinishMoments(d, x, n, run);
  const double before = static_cast<double>(r), values = static_cast<double>(n);
  const double difference = r == 0 ? run.mean : run.mean - mean;
  if (r == 0) mean = squares = 0;
  mean += difference / (before + 1);
  squares += values * run.var + difference * difference * values * before / (before + 1);
}
HWY_INLINE void AddRun(const Products& run, std::int64_t r, double& sum, double& product) {
  sum = run.sum + (r == 0 ? 0 : sum);
  product = run.product + (r == 0 ? 0 : product);
}

// As ColumnMoments(), of channels in long runs, run by run: both sums of a run while the
// first-level cache holds it.
template <class T>
HWY_NOINLINE void RunMoments(const ChannelsTask<T>& a, const Piece& p) {
  const hn::ScalableTag<T> d;
  const std::int64_t space = a.shape.space;
  for (std::int64_t r = 0; r < p.rows(); ++r) {
    const T* HWY_RESTRICT x = a.x + p.offset + r * a.stride();
    for (std::int64_t c = p.c0; c < p.c1; ++c, x += space) {
      if (p.r0 + r + 1 < a.shape.samples) PrefetchRun(x + a.stride(), HWY_MIN(space, kBlock));
      const std::int64_t at = p.down * a.columns() + c;
      AddRun(d, x, space, r, MeanOf(d, x, space), a.first[at], a.second[at]);
    }
  }
}

// The sums of dy and of dy z of each column of a piece.
template <class T>
HWY_NOINLINE void ColumnProducts(const ChannelsTask<T>& a, const Piece& p) {
  const std::int64_t stride = a.stride();
  const T* HWY_RESTRICT x = a.x + p.offset;
  const T* HWY_RESTRICT dy = a.dy + p.offset;
  const T* HWY_RESTRICT mean = a.lines[0] + p.column;
  const T* HWY_RESTRICT rstd = a.lines[1] + p.column;
  HWY_ALIGN T sums[kColumns], products[kColumns];
  SumColumns(
      p.rows(), p.cols,
      [&](std::int64_t r, std::int64_t j, const auto& load, auto& s, auto& q) HWY_ATTR {
        AddProducts(load(x + r * stride + j), load(dy + r * stride + j), load(mean + j),
                    load(rstd + j), s, q);
      },
      sums, products);
  std::copy_n(sums, p.cols, a.first + p.down * a.columns() + p.column);
  std::copy_n(products, p.cols, a.second + p.down * a.columns() + p.column);
}

template <class T>
HWY_NOINLINE void RunProducts(const ChannelsTask<T>& a, const Piece& p) {
  const hn::ScalableTag<T> d;
  const std::int64_t space = a.shape.space;
  for (std::int64_t r = 0; r < p.rows(); ++r) {
    const T* HWY_RESTRICT x = a.x + p.offset + r * a.stride();
    const T* HWY_RESTRICT dy = a.dy + p.offset + r * a.stride();
    for (std::int64_t c = p.c0; c < p.c1; ++c, x += space, dy += space) {
      if (p.r0 + r + 1 < a.shape.samples) {
        PrefetchRun(x + a.stride(), HWY_MIN(space, kBlock));
        PrefetchRun(dy + a.stride(), HWY_MIN(space, kBlock));
      }
      const Products run =
          ProductsOf(d, x, dy, space, hn::Set(d, a.mean[c]), hn::Set(d, a.rstd[c]));
      const std::int64_t at = p.down * a.columns() + c;
      AddRun(run, r, a.first[at], a.second[at]);
    }
  }
}

// A constant of each column. A run has one for all its elements.
template <bool kRuns, class T>
struct Line {
  const T* HWY_RESTRICT value;

  template <class D, class Load>
  HWY_INLINE hn::Vec<D> at(D d, std::int64_t j, const Load& load) const {
    if constexpr (kRuns) return hn::Set(d, value[0]);
    return load(value + j);
  }
};

// f(offset, n, column) for the parts of a piece's rows that have one constant an element: whole
// rows, or, of rows in runs, the runs.
template <bool kRuns, class T, class F>
HWY_INLINE void ForParts(const ChannelsTask<T>& a, const Piece& p, const F& f) {
  for (std::int64_t r = 0; r < p.rows(); ++r) {
    const std::int64_t row = p.offset + r * a.stride();
    if constexpr (kRuns) {
      for (std::int64_t c = p.c0; c < p.c1; ++c) {
        f(row + (c - p.c0) * a.shape.space, a.shape.space, c);
      }
    } else {
      f(row, p.cols, p.column);
    }
  }
}

// A result, from the lines of its column (ChannelsTask::lines): y, or backward dx. `dy` is not used
// forward.
template <bool kBackward, class V, class L>
HWY_INLINE V ResultOf(V x, [[maybe_unused]] V dy, const L& line) {
  const V z = hn::Mul(hn::Sub(x, line(0)), line(1));
  if constexpr (kBackward) {
    return hn::Mul(line(2), hn::Sub(dy, hn::MulAdd(z, line(4), line(3))));
  } else {
    return hn::MulAdd(z, line(2), line(3));
  }
}

// for r, j: y = (x - mean) * rstd * gain + shift;
// backward: dx = gain * rstd * (dy - c1 - z * c2), or dx += ... ;
template <bool kBackward, bool kRuns, bool kAccumulate, class T>
HWY_NOINLINE void WriteResult(const ChannelsTask<T>& a, const Piece& p) {
  const hn::ScalableTag<T> d;
  ForParts<kRuns>(a, p, [&](std::int64_t offset, std::int64_t n, std::int64_t column) HWY_ATTR {
    const T* HWY_RESTRICT x = a.x + offset;
    const T* HWY_RESTRICT dy = kBackward ? a.dy + offset : x;
    T* HWY_RESTRICT result = (kBackward ? a.out.dx : a.y) + offset;
    const Line<kRuns, T> lines[] = {{a.lines[0] + column},
                                    {a.lines[1] + column},
                                    {a.lines[2] + column},
                                    {a.lines[3] + column},
                                    {a.lines[4] + column}};
    ForVectors(d, n, a.past, [&](std::int64_t j, const auto& load, const auto& store) HWY_ATTR {
      const auto line = [&](int i) HWY_ATTR { return lines[i].at(d, j, load); };
      const auto v = ResultOf<kBackward>(load(x + j), load(dy + j), line);
      store(kAccumulate ? hn::Add(load(result + j), v) : v, result + j);
    });
  });
}

// The first row of first and second becomes that of all samples, for columns j0..j0+n-1.
template <bool kBackward, class T>
HWY_NOINLINE void CombineRows(const ChannelsTask<T>& a, std::int64_t j0, std::int64_t n) {
  ForWide(n, [&](std::int64_t j, auto dd) HWY_ATTR {
    double *first = a.first + j0 + j, *second = a.second + j0 + j;
    const auto from = kBackward ? hn::Zero(dd) : hn::LoadU(dd, first);
    auto p = hn::Zero(dd), q = p;
    double before = 0;
    for (std::int64_t down = 0; down < a.pieces.down; ++down) {
      const std::int64_t row = down * a.columns();
      const double more = static_cast<double>(a.values(down));
      AddSums<kBackward>(before, more, from, hn::LoadU(dd, first + row),
                         hn::LoadU(dd, second + row), p, q);
      before += more;
    }
    hn::StoreU(hn::Add(p, from), dd, first);
    hn::StoreU(q, dd, second);
  });
}

template <class T>
HWY_INLINE void FirstPass(const ChannelsTask<T>& a, std::int64_t i, std::int64_t j) {
  const Piece p(a, i, j);
  if (a.dy) {
    a.pieces.runs ? RunProducts(a, p) : ColumnProducts(a, p);
  } else {
    a.pieces.runs ? RunMoments(a, p) : ColumnMoments(a, p);
  }
}
template <class T>
HWY_INLINE void SecondPass(const ChannelsTask<T>& a, std::int64_t i, std::int64_t j) {
  const Piece p(a, i, j);
  const bool add = a.out.accumulate_dx;
  if (!a.dy) {
    a.pieces.runs ? WriteResult<false, true, false>(a, p) : WriteResult<false, false, false>(a, p);
  } else if (a.pieces.runs) {
    add ? WriteResult<true, true, true>(a, p) : WriteResult<true, true, false>(a, p);
  } else {
    add ? WriteResult<true, false, true>(a, p) : WriteResult<true, false, false>(a, p);
  }
  FlushStores(a.past);
}

}  // namespace norma::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // NORMA_NORM_CHANNELS_INL_H_
