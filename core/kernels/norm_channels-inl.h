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

// for r, j: p[j] += f(r, j)[0] and q[j] += f(r, j)[1], for few enough rows to be summed in T.
// f(r, j, load, s) gives the lanes from column j on.
template <class T, class F>
HWY_INLINE void SumColumns(std::int64_t rows, std::int64_t cols, const F& f, T* HWY_RESTRICT p,
                           T* HWY_RESTRICT q) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr std::int64_t kTogether = 8;
  std::fill_n(p, cols, T{0});
  std::fill_n(q, cols, T{0});
  std::int64_t r = 0;
  for (; r + kTogether <= rows; r += kTogether) {
    ForVectors(d, cols, false, [&](std::int64_t j, const auto& load, const auto& store) HWY_ATTR {
      V even[2], odd[2];
      f(r, j, load, even);
      f(r + 1, j, load, odd);
      for (std::int64_t i = 2; i < kTogether; i += 2) {
        V s[2];
        f(r + i, j, load, s);
        for (int k = 0; k < 2; ++k) even[k] = hn::Add(even[k], s[k]);
        f(r + i + 1, j, load, s);
        for (int k = 0; k < 2; ++k) odd[k] = hn::Add(odd[k], s[k]);
      }
      store(hn::Add(load(p + j), hn::Add(even[0], odd[0])), p + j);
      store(hn::Add(load(q + j), hn::Add(even[1], odd[1])), q + j);
    });
  }
  for (; r < rows; ++r) {
    ForVectors(d, cols, false, [&](std::int64_t j, const auto& load, const auto& store) HWY_ATTR {
      V s[2];
      f(r, j, load, s);
      store(hn::Add(load(p + j), s[0]), p + j);
      store(hn::Add(load(q + j), s[1]), q + j);
    });
  }
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
      [&](std::int64_t r, std::int64_t j, const auto& load, auto* s) HWY_ATTR {
        s[0] = hn::Sub(load(x + r * stride + j), load(x + j));
        s[1] = hn::Mul(s[0], s[0]);
      },
      sums, squares);
  double* HWY_RESTRICT mean = a.first + p.down * a.columns() + p.column;
  double* HWY_RESTRICT deviations = a.second + p.down * a.columns() + p.column;
  const double count = static_cast<double>(p.rows()), inverse = 1 / count;
  for (std::int64_t j = 0; j < p.cols; ++j) {
    const double difference = static_cast<double>(sums[j]);
    mean[j] = static_cast<double>(x[j]) + difference * inverse;
    deviations[j] = static_cast<double>(squares[j]) - difference * difference * inverse;
  }
}

// The same of channels in long runs, run by run: both sums of a run while the first-level cache
// holds it.
template <class T>
HWY_NOINLINE void RunMoments(const ChannelsTask<T>& a, const Piece& p) {
  const hn::ScalableTag<T> d;
  const std::int64_t space = a.shape.space;
  const double n = static_cast<double>(space);
  for (std::int64_t r = 0; r < p.rows(); ++r) {
    const T* HWY_RESTRICT x = a.x + p.offset + r * a.stride();
    const double before = static_cast<double>(r);
    for (std::int64_t c = p.c0; c < p.c1; ++c, x += space) {
      if (p.r0 + r + 1 < a.shape.samples) PrefetchRun(x + a.stride(), HWY_MIN(space, kBlock));
      Moments run;
      run.mean = MeanOf(d, x, space);
      FinishMoments(d, x, space, run);
      double &mean = a.first[p.down * a.columns() + c], &all = a.second[p.down * a.columns() + c];
      const double difference = r == 0 ? run.mean : run.mean - mean;
      if (r == 0) mean = all = 0;
      mean += difference / (before + 1);
      all += n * run.var + difference * difference * n * before / (before + 1);
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
      [&](std::int64_t r, std::int64_t j, const auto& load, auto* s) HWY_ATTR {
        s[0] = load(dy + r * stride + j);
        const auto centred = hn::Sub(load(x + r * stride + j), load(mean + j));
        s[1] = hn::Mul(s[0], hn::Mul(centred, load(rstd + j)));
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
      double& all = a.first[p.down * a.columns() + c];
      double& all_products = a.second[p.down * a.columns() + c];
      all = run.sum + (r == 0 ? 0 : all);
      all_products = run.product + (r == 0 ? 0 : all_products);
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

// for r, j: y = (x - mean) * rstd * gain + shift;
template <bool kRuns, class T>
HWY_NOINLINE void WriteOutput(const ChannelsTask<T>& a, const Piece& p) {
  const hn::ScalableTag<T> d;
  ForParts<kRuns>(a, p, [&](std::int64_t offset, std::int64_t n, std::int64_t column) HWY_ATTR {
    const T* HWY_RESTRICT x = a.x + offset;
    T* HWY_RESTRICT y = a.y + offset;
    const Line<kRuns, T> mean{a.lines[0] + column}, rstd{a.lines[1] + column};
    const Line<kRuns, T> gain{a.lines[2] + column}, shift{a.lines[3] + column};
    ForVectors(d, n, a.past, [&](std::int64_t j, const auto& load, const auto& store) HWY_ATTR {
      const auto z = hn::Mul(hn::Sub(load(x + j), mean.at(d, j, load)), rstd.at(d, j, load));
      store(hn::MulAdd(z, gain.at(d, j, load), shift.at(d, j, load)), y + j);
    });
  });
}

// for r, j: dx = gain * rstd * (dy - c1 - z * c2);
template <bool kRuns, bool kAccumulate, class T>
HWY_NOINLINE void WriteGradient(const ChannelsTask<T>& a, const Piece& p) {
  const hn::ScalableTag<T> d;
  ForParts<kRuns>(a, p, [&](std::int64_t offset, std::int64_t n, std::int64_t column) HWY_ATTR {
    const T* HWY_RESTRICT x = a.x + offset;
    const T* HWY_RESTRICT dy = a.dy + offset;
    T* HWY_RESTRICT dx = a.out.dx + offset;
    const Line<kRuns, T> mean{a.lines[0] + column}, rstd{a.lines[1] + column};
    const Line<kRuns, T> scale{a.lines[2] + column};
    const Line<kRuns, T> c1{a.lines[3] + column}, c2{a.lines[4] + column};
    ForVectors(d, n, a.past, [&](std::int64_t j, const auto& load, const auto& store) HWY_ATTR {
      const auto z = hn::Mul(hn::Sub(load(x + j), mean.at(d, j, load)), rstd.at(d, j, load));
      const auto means = hn::MulAdd(z, c2.at(d, j, load), c1.at(d, j, load));
      const auto v = hn::Mul(scale.at(d, j, load), hn::Sub(load(dy + j), means));
      store(kAccumulate ? hn::Add(load(dx + j), v) : v, dx + j);
    });
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
  if (a.dy) {
    const bool add = a.out.accumulate_dx;
    if (a.pieces.runs) {
      add ? WriteGradient<true, true>(a, p) : WriteGradient<true, false>(a, p);
    } else {
      add ? WriteGradient<false, true>(a, p) : WriteGradient<false, false>(a, p);
    }
  } else {
    a.pieces.runs ? WriteOutput<true>(a, p) : WriteOutput<false>(a, p);
  }
  FlushStores(a.past);
}

}  // namespace norma::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // NORMA_NORM_CHANNELS_INL_H_
