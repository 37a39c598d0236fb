// The steps from panel to panel: see Note [Panels] in norm_channels_task.h.
//
// Included once a target.
#if defined(NORMA_NORM_PANELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMA_NORM_PANELS_INL_H_
#undef NORMA_NORM_PANELS_INL_H_
#else
#define NORMA_NORM_PANELS_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "core/kernels/norm_channels-inl.h"
#include "core/kernels/norm_channels_task.h"
#include "core/kernels/tail-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace norma::kernels::HWY_NAMESPACE {

// A step on a matrix. What is read of panel `next` replaces in `kept` what was read of panel
// `last`: its rows, x and behind it dy.
template <bool kBackward, bool kRead, bool kWrite, class T>
class MatrixStep {
 public:
  MatrixStep(const ChannelsTask<T>& a, std::int64_t next, std::int64_t last, T* kept)
      : a_(a), stride_(a.stride()), kept_(kept) {
    if constexpr (kRead) {
      column_ = next * kWidth;
      x_ = a.x + column_;
      if constexpr (kBackward) {
        dy_ = a.dy + column_;
        std::copy_n(a.lines[0] + column_, kWidth, mean_);
        std::copy_n(a.lines[1] + column_, kWidth, rstd_);
      }
    }
    if constexpr (kWrite) {
      result_ = (kBackward ? a.out.dx : a.y) + last * kWidth;
      for (int i = 0; i < ChannelsTask<T>::kLines; ++i) {
        std::copy_n(a.lines[i] + last * kWidth, kWidth, line_[i]);
      }
    }
  }

  // Afterwards the first row of first and second is that of all samples, for the columns of `next`.
  void operator()() {
    for (std::int64_t r0 = 0; r0 < a_.shape.samples; r0 += kRows) {
      const std::int64_t r1 = HWY_MIN(r0 + kRows, a_.shape.samples);
      std::fill_n(sums_, kWidth, T{0});
      std::fill_n(products_, kWidth, T{0});
      for (std::int64_t r = r0; r < r1; r += kTogether) {
        const std::int64_t some = HWY_MIN(kTogether, r1 - r);
        for (std::int64_t j = 0; j < kWidth; j += kVectors * Lanes()) StepRows(r0, r, some, j);
      }
      if constexpr (kRead) AddPiece(r0, r1);
    }
    if constexpr (kRead) {
      for (std::int64_t j = 0; j < kWidth; ++j) a_.first[column_ + j] = first_[j] + from_[j];
      std::copy_n(second_, kWidth, a_.second + column_);
    }
    FlushStores(true);
  }

 private:
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  static constexpr std::int64_t kWidth = panel_width<T>(kBackward);
  // Vectors of a row whose two sums and, forward, first row are in registers: 12 of 16, or 24 of
  // AVX-512's 32.
  static constexpr int kVectors = HWY_MIN(static_cast<int>(kWidth / hn::MaxLanes(D())),
                                          hn::MaxLanes(D()) * sizeof(T) == 64 ? 8 : 4);
  static constexpr std::int64_t kAhead = 16;  // rows
  static std::int64_t Lanes() { return static_cast<std::int64_t>(hn::Lanes(D())); }

  // Rows r..r+some-1 of the vectors from column j on, of the piece that begins at row r0.
  HWY_INLINE void StepRows(std::int64_t r0, std::int64_t r, std::int64_t some, std::int64_t j) {
    const D d;
    const std::int64_t lanes = Lanes();
    V s[kVectors], q[kVectors], from[kVectors];
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v) {
      s[v] = q[v] = from[v] = hn::Zero(d);
      if constexpr (kRead && !kBackward) from[v] = hn::LoadU(d, x_ + r0 * stride_ + j + v * lanes);
    }
    constexpr std::int64_t kKept = kWidth * (kBackward ? 2 : 1);
    for (std::int64_t i = r; i < r + some; ++i) {
      const std::int64_t at = i * stride_ + j;
      const std::int64_t ahead = HWY_MIN(i + kAhead, a_.shape.samples - 1) * stride_ + j;
      T* HWY_RESTRICT kept = kept_ + i * kKept + j;
      HWY_UNROLL(8)
      for (int v = 0; v < kVectors; ++v) {
        const std::int64_t k = v * lanes;
        if constexpr (kRead) PrefetchHere(x_ + ahead + k);
        if constexpr (kWrite) hn::Stream(Result(kept, j, k), d, result_ + at + k);
        if constexpr (kRead) {
          const V x = hn::LoadU(d, x_ + at + k);
          hn::Store(x, d, kept + k);
          if constexpr (kBackward) {
            PrefetchHere(dy_ + ahead + k);
            const V dy = hn::LoadU(d, dy_ + at + k);
            hn::Store(dy, d, kept + kWidth + k);
            AddProducts(x, dy, hn::Load(d, mean_ + j + k), hn::Load(d, rstd_ + j + k), s[v], q[v]);
          } else {
            AddMoments(x, from[v], s[v], q[v]);
          }
        }
      }
    }
    if constexpr (kRead) {
      HWY_UNROLL(8)
      for (int v = 0; v < kVectors; ++v) {
        T* const p = sums_ + j + v * lanes;
        T* const p2 = products_ + j + v * lanes;
        hn::Store(hn::Add(hn::Load(d, p), s[v]), d, p);
        hn::Store(hn::Add(hn::Load(d, p2), q[v]), d, p2);
      }
    }
  }

  HWY_INLINE V Result(const T* HWY_RESTRICT kept, std::int64_t j, std::int64_t k) const {
    const D d;
    const auto line = [&](int i) HWY_ATTR { return hn::Load(d, line_[i] + j + k); };
    const V x = hn::Load(d, kept + k);
    return ResultOf<kBackward>(x, kBackward ? hn::Load(d, kept + kWidth + k) : x, line);
  }

  // Adds the sums of rows r0..r1-1 to those of the rows before; as CombineRows() does.
  HWY_INLINE void AddPiece(std::int64_t r0, std::int64_t r1) {
    ForWide(kWidth, [&](std::int64_t j, auto dd) HWY_ATTR {
      hn::Vec<decltype(dd)> p2, q2;
      if constexpr (kBackward) {
        p2 = LoadWide(dd, sums_ + j);
        q2 = LoadWide(dd, products_ + j);
      } else {
        FinishColumns(dd, x_ + r0 * stride_ + j, sums_ + j, products_ + j, r1 - r0, p2, q2);
        if (r0 == 0) hn::StoreU(p2, dd, from_ + j);
      }
      auto p = hn::LoadU(dd, first_ + j), q = hn::LoadU(dd, second_ + j);
      AddSums<kBackward>(static_cast<double>(r0), static_cast<double>(r1 - r0),
                         hn::LoadU(dd, from_ + j), p2, q2, p, q);
      hn::StoreU(p, dd, first_ + j);
      hn::StoreU(q, dd, second_ + j);
    });
  }

  const ChannelsTask<T>& a_;
  std::int64_t stride_, column_ = 0;
  const T* x_ = nullptr;
  const T* dy_ = nullptr;
  T* result_ = nullptr;
  T* kept_;
  // Of the panel alone, beside each other: in the arrays of all columns they may lie a power of two
  // apart, where the first-level cache has few places for them.
  HWY_ALIGN T line_[ChannelsTask<T>::kLines][kWidth] = {};
  HWY_ALIGN T mean_[kWidth] = {}, rstd_[kWidth] = {};
  HWY_ALIGN T sums_[kWidth], products_[kWidth];  // of a piece; forward the latter are squares
  HWY_ALIGN double from_[kWidth] = {}, first_[kWidth] = {}, second_[kWidth] = {};
};

// What there is to do beside the reading of a run in channel c: to ask for the run below, and to
// write that of a channel of panel `last`, whole vectors all, from what the caches hold of it.
template <bool kBackward, class T>
class BesideRun {
 public:
  BesideRun(const ChannelsTask<T>& a, std::int64_t offset, bool below, std::int64_t last_offset,
            std::int64_t last_channel)
      : x_(a.x + last_offset),
        dy_(kBackward ? a.dy + last_offset : nullptr),
        result_((kBackward ? a.out.dx : a.y) + last_offset),
        x_below_(a.x + offset + (below ? a.stride() : 0)),
        dy_below_(kBackward ? a.dy + offset + (below ? a.stride() : 0) : nullptr) {
    for (int i = 0; i < ChannelsTask<T>::kLines; ++i) line_[i] = a.lines[i][last_channel];
  }

  HWY_INLINE void operator()(std::int64_t j) const {
    const hn::ScalableTag<T> d;
    const auto line = [&](int i) HWY_ATTR { return hn::Set(d, line_[i]); };
    const auto x = hn::LoadU(d, x_ + j);
    hwy::Prefetch(x_below_ + j);
    if constexpr (kBackward) hwy::Prefetch(dy_below_ + j);
    const auto dy = kBackward ? hn::LoadU(d, dy_ + j) : x;
    hn::Stream(ResultOf<kBackward>(x, dy, line), d, result_ + j);
  }

 private:
  const T* HWY_RESTRICT x_;
  const T* HWY_RESTRICT dy_;
  T* HWY_RESTRICT result_;
  const T* HWY_RESTRICT x_below_;
  const T* HWY_RESTRICT dy_below_;
  T line_[ChannelsTask<T>::kLines];
};

// A step on runs, whose prefetches the compiler may gather: they come a whole run ahead. Afterwards
// first and second have a row for each piece.
template <bool kBackward, class T>
HWY_NOINLINE void StepRuns(const ChannelsTask<T>& a, std::int64_t next, std::int64_t last) {
  const hn::ScalableTag<T> d;
  static_assert(hn::MaxLanes(decltype(d)()) * sizeof(T) <= 64, "a run is whole vectors");
  const std::int64_t space = a.shape.space;
  const std::int64_t between = (last - next) * a.pieces.width;  // channels
  for (std::int64_t i = 0; i < a.pieces.down; ++i) {
    const Piece p(a, i, next);
    for (std::int64_t r = 0; r < p.rows(); ++r) {
      for (std::int64_t c = p.c0; c < p.c1; ++c) {
        const std::int64_t offset = p.offset + r * a.stride() + (c - p.c0) * space;
        const std::int64_t at = i * a.columns() + c;
        const BesideRun<kBackward, T> beside(a, offset, p.r0 + r + 1 < a.shape.samples,
                                             offset + between * space, c + between);
        if constexpr (kBackward) {
          AddRun(ProductsOf(d, a.x + offset, a.dy + offset, space, hn::Set(d, a.mean[c]),
                            hn::Set(d, a.rstd[c]), beside),
                 r, a.first[at], a.second[at]);
        } else {
          AddRun(d, a.x + offset, space, r, MeanOf(d, a.x + offset, space, beside), a.first[at],
                 a.second[at]);
        }
      }
    }
  }
  FlushStores(true);
}

template <bool kBackward, class T>
HWY_INLINE void Step(const ChannelsTask<T>& a, std::int64_t next, std::int64_t last, T* kept) {
  if (a.pieces.runs) {
    if (next != kNoPanel && last != kNoPanel) return StepRuns<kBackward>(a, next, last);
    for (std::int64_t i = 0; i < a.pieces.down; ++i) {
      last == kNoPanel ? FirstPass(a, i, next) : SecondPass(a, i, last);
    }
  } else if (next == kNoPanel) {
    MatrixStep<kBackward, false, true, T>(a, next, last, kept)();
  } else if (last == kNoPanel) {
    MatrixStep<kBackward, true, false, T>(a, next, last, kept)();
  } else {
    MatrixStep<kBackward, true, true, T>(a, next, last, kept)();
  }
}

// Reads panel `next` and writes the result of panel `last`; either may be kNoPanel.
template <class T>
HWY_INLINE void StepPanels(const ChannelsTask<T>& a, std::int64_t next, std::int64_t last,
                           T* kept) {
  a.dy ? Step<true>(a, next, last, kept) : Step<false>(a, next, last, kept);
}

}  // namespace norma::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // NORMA_NORM_PANELS_INL_H_
