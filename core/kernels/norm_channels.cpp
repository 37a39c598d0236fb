#include "core/kernels/norm_channels.h"

#include <algorithm>
#include <cmath>

#include "core/kernels/moments.h"
#include "core/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/norm_channels.cpp"
#include "hwy/foreach_target.h"
// Behind foreach_target.h.
#include "core/kernels/tail-inl.h"
#include "hwy/highway.h"

#ifndef NORMA_KERNELS_NORM_CHANNELS_TYPES_
#define NORMA_KERNELS_NORM_CHANNELS_TYPES_
namespace norma::kernels {

// Note [Runs or columns]. A channel's values are `samples` runs of `space` elements. Where a run is
// long, one channel is read at a time, run by run. Where it is short (space 1: plain features), the
// vectors go across the channels: a block of columns of the (samples, channels * space) matrix is
// read row by row, and the columns of one channel are added up at the end. Either way a block stays
// in the L2 cache between the passes over it.
constexpr std::int64_t kShortRun = 16;
constexpr std::int64_t kColumns = 64;
// Rows that the first pass over columns asks for ahead: they lie too far apart for the hardware.
constexpr std::int64_t kRowsAhead = 16;

// What both directions read and write; unused members are null.
template <class T>
struct ChannelsTask {
  ChannelsShape shape;
  bool given;  // mean and rstd are inputs
  const T* x;
  const T* dy;
  const T* weight;
  const T* bias;
  T* y;
  T* mean;
  T* var;
  T* rstd;
  NormGradients<T> out;

  [[nodiscard]] T gain(std::int64_t c) const { return weight ? weight[c] : T{1}; }
  [[nodiscard]] T shift(std::int64_t c) const { return bias ? bias[c] : T{0}; }
  void keep(std::int64_t c, const Moments& m) const {
    mean[c] = static_cast<T>(m.mean);
    var[c] = static_cast<T>(m.var);
    rstd[c] = static_cast<T>(m.rstd);
  }
  void keep_sums(std::int64_t c, double sum, double product) const {
    if (out.dbias)
      out.dbias[c] = (out.accumulate_dbias ? out.dbias[c] : T{0}) + static_cast<T>(sum);
    if (out.dweight) {
      out.dweight[c] = (out.accumulate_dweight ? out.dweight[c] : T{0}) + static_cast<T>(product);
    }
  }
  // The moments from `sum` of x - first and `squares` of x - rounded mean; see RowMoments.
  [[nodiscard]] Moments moments(std::int64_t c, double exact_mean, double squares) const {
    Moments m;
    const double count = static_cast<double>(shape.count());
    const double error = static_cast<double>(static_cast<T>(exact_mean)) - exact_mean;
    m.mean = exact_mean;
    m.var = std::isfinite(squares) ? std::max(0.0, squares / count - error * error) : squares;
    if (!in_range<T>(m.var, shape.eps)) {
      return scaled_moments(shape.count(), true, shape.eps, [&](std::int64_t i) {
        return x[(i / shape.space * shape.channels + c) * shape.space + i % shape.space];
      });
    }
    m.rstd = reciprocal_deviation(m.var, shape.eps);
    return m;
  }
};

}  // namespace norma::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace norma::kernels::HWY_NAMESPACE {

// --- Runs: one channel at a time. ---

template <class T>
HWY_NOINLINE void RunsForward(const ChannelsTask<T>& a, std::int64_t c) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t space = a.shape.space, stride = a.shape.channels * space;
  const T* HWY_RESTRICT x = a.x + c * space;
  if (!a.given) {
    const auto first = hn::Set(d, x[0]);
    double shifted = 0, squares = 0;
    for (std::int64_t n = 0; n < a.shape.samples; ++n) {
      if (n + 1 < a.shape.samples) PrefetchRun(x + (n + 1) * stride, HWY_MIN(space, kBlock));
      shifted +=
          SumOf(d, x + n * stride, space, [&](auto v) HWY_ATTR { return hn::Sub(v, first); });
    }
    const double exact = static_cast<double>(x[0]) + shifted / static_cast<double>(a.shape.count());
    const auto mean = hn::Set(d, static_cast<T>(exact));
    for (std::int64_t n = 0; n < a.shape.samples; ++n) {
      squares += SumOf(d, x + n * stride, space, [&](auto v) HWY_ATTR {
        const auto centred = hn::Sub(v, mean);
        return hn::Mul(centred, centred);
      });
    }
    a.keep(c, a.moments(c, exact, squares));
  }
  const auto mean = hn::Set(d, a.mean[c]), rstd = hn::Set(d, a.rstd[c]);
  const auto gain = hn::Set(d, a.gain(c)), shift = hn::Set(d, a.shift(c));
  const auto value = [&](auto v) HWY_ATTR {
    return hn::MulAdd(hn::Mul(hn::Sub(v, mean), rstd), gain, shift);
  };
  for (std::int64_t n = 0; n < a.shape.samples; ++n) {
    // for (i = 0; i < space; ++i) y[i] = (x[i] - mean) * rstd * gain + shift;
    const T* HWY_RESTRICT from = x + n * stride;
    T* HWY_RESTRICT to = a.y + c * space + n * stride;
    std::int64_t i = 0;
    for (; i + lanes <= space; i += lanes) hn::StoreU(value(hn::LoadU(d, from + i)), d, to + i);
    if (i < space) StoreTail(value(LoadTail(d, from + i, space - i)), d, to + i, space - i);
  }
}

template <class T>
HWY_NOINLINE void RunsBackward(const ChannelsTask<T>& a, std::int64_t c) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t space = a.shape.space, stride = a.shape.channels * space;
  const auto mean = hn::Set(d, a.mean[c]), rstd = hn::Set(d, a.rstd[c]);
  double sum = 0, product = 0;
  for (std::int64_t n = 0; n < a.shape.samples; ++n) {
    // for (i = 0; i < space; ++i) sum += dy[i], product += dy[i] * (x[i] - mean) * rstd;
    const T* HWY_RESTRICT x = a.x + c * space + n * stride;
    const T* HWY_RESTRICT dy = a.dy + c * space + n * stride;
    if (n + 1 < a.shape.samples) {
      PrefetchRun(x + stride, HWY_MIN(space, kBlock));
      PrefetchRun(dy + stride, HWY_MIN(space, kBlock));
    }
    for (std::int64_t b = 0; b < space; b += kBlock) {
      const std::int64_t stop = HWY_MIN(space, b + kBlock);
      auto p0 = hn::Zero(d), p1 = p0, q0 = p0, q1 = p0;
      std::int64_t i = b;
      for (; i + 2 * lanes <= stop; i += 2 * lanes) {
        const auto g0 = hn::LoadU(d, dy + i), g1 = hn::LoadU(d, dy + i + lanes);
        p0 = hn::Add(p0, g0);
        p1 = hn::Add(p1, g1);
        q0 = hn::MulAdd(g0, hn::Mul(hn::Sub(hn::LoadU(d, x + i), mean), rstd), q0);
        q1 = hn::MulAdd(g1, hn::Mul(hn::Sub(hn::LoadU(d, x + i + lanes), mean), rstd), q1);
      }
      for (; i < stop; i += lanes) {
        const std::int64_t k = HWY_MIN(lanes, stop - i);
        const auto g = LoadTail(d, dy + i, k);
        p0 = hn::Add(p0, g);
        q0 = hn::MulAdd(g, hn::Mul(hn::Sub(LoadTail(d, x + i, k), mean), rstd), q0);
      }
      sum += static_cast<double>(SumLanes(d, hn::Add(p0, p1)));
      product += static_cast<double>(SumLanes(d, hn::Add(q0, q1)));
    }
  }
  a.keep_sums(c, sum, product);
  if (!a.out.dx) return;
  const double count = static_cast<double>(a.shape.count());
  const auto c1 = hn::Set(d, a.given ? T{0} : static_cast<T>(sum / count));
  const auto c2 = hn::Set(d, a.given ? T{0} : static_cast<T>(product / count));
  const auto scale = hn::Set(d, a.gain(c) * a.rstd[c]);
  const auto value = [&](auto g, auto xv) HWY_ATTR {
    const auto z = hn::Mul(hn::Sub(xv, mean), rstd);
    return hn::Mul(scale, hn::Sub(g, hn::MulAdd(z, c2, c1)));
  };
  for (std::int64_t n = 0; n < a.shape.samples; ++n) {
    // for (i = 0; i < space; ++i) dx[i] = scale * (dy[i] - c1 - (x[i] - mean) * rstd * c2);
    const std::int64_t at = c * space + n * stride;
    const T* HWY_RESTRICT x = a.x + at;
    const T* HWY_RESTRICT dy = a.dy + at;
    T* HWY_RESTRICT dx = a.out.dx + at;
    std::int64_t i = 0;
    if (!a.out.accumulate_dx) {
      for (; i + lanes <= space; i += lanes) {
        hn::StoreU(value(hn::LoadU(d, dy + i), hn::LoadU(d, x + i)), d, dx + i);
      }
    }
    for (; i < space; i += lanes) {
      const std::int64_t k = HWY_MIN(lanes, space - i);
      const auto v = value(LoadTail(d, dy + i, k), LoadTail(d, x + i, k));
      StoreTail(a.out.accumulate_dx ? hn::Add(LoadTail(d, dx + i, k), v) : v, d, dx + i, k);
    }
  }
}

// --- Columns: a block of at most kColumns of them. ---

template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> LoadSome(D d, const T* HWY_RESTRICT p, std::int64_t n) {
  return n >= static_cast<std::int64_t>(hn::Lanes(d)) ? hn::LoadU(d, p) : LoadTail(d, p, n);
}
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void StoreSome(hn::Vec<D> v, D d, T* HWY_RESTRICT p, std::int64_t n) {
  if (n >= static_cast<std::int64_t>(hn::Lanes(d))) {
    hn::StoreU(v, d, p);
  } else {
    StoreTail(v, d, p, n);
  }
}

// Constants of the columns of a block, one for each vector lane that covers it.
template <class T>
struct Columns {
  HWY_ALIGN T value[kColumns] = {};
};

// double p[j] = 0, q[j] = 0; for r, j: p[j] += first(r, j), q[j] += second(r, j).
// f(r, j, n, p, q) gives both for the n lanes from column j on. 256 rows are summed in T.
template <class T, class F>
HWY_INLINE void SumColumns(std::int64_t rows, std::int64_t cols, const F& f, double* p, double* q) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::fill(p, p + kColumns, 0.0);
  std::fill(q, q + kColumns, 0.0);
  for (std::int64_t b = 0; b < rows; b += 256) {
    Columns<T> first, second;
    const std::int64_t stop = HWY_MIN(rows, b + 256);
    for (std::int64_t r = b; r < stop; r += 2) {
      for (std::int64_t j = 0; j < cols; j += lanes) {
        auto p0 = hn::Zero(d), q0 = p0, p1 = p0, q1 = p0;
        f(r, j, cols - j, p0, q0);
        if (r + 1 < stop) f(r + 1, j, cols - j, p1, q1);
        const auto p2 = hn::Load(d, first.value + j), q2 = hn::Load(d, second.value + j);
        hn::Store(hn::Add(p2, hn::Add(p0, p1)), d, first.value + j);
        hn::Store(hn::Add(q2, hn::Add(q0, q1)), d, second.value + j);
      }
    }
    for (std::int64_t j = 0; j < cols; ++j) {
      p[j] += static_cast<double>(first.value[j]);
      q[j] += static_cast<double>(second.value[j]);
    }
  }
}

// Channels c0..c0+n-1.
template <class T>
HWY_NOINLINE void ColumnsForward(const ChannelsTask<T>& a, std::int64_t c0, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t space = a.shape.space, stride = a.shape.channels * space, cols = n * space;
  const std::int64_t rows = a.shape.samples;
  const T* HWY_RESTRICT x = a.x + c0 * space;
  Columns<T> mean, rstd, gain, shift;
  if (!a.given) {
    double p[kColumns], q[kColumns], exact[kColumns];
    Columns<T> first;
    for (std::int64_t j = 0; j < cols; ++j) first.value[j] = x[j / space * space];
    SumColumns<T>(
        rows, cols,
        [&](std::int64_t r, std::int64_t j, std::int64_t k, auto& s, auto&) HWY_ATTR {
          if (j == 0) PrefetchRun(x + HWY_MIN(r + kRowsAhead, rows - 1) * stride, cols);
          s = hn::Sub(LoadSome(d, x + r * stride + j, k), hn::Load(d, first.value + j));
        },
        p, q);
    for (std::int64_t c = 0; c < n; ++c) {
      double shifted = 0;
      for (std::int64_t i = 0; i < space; ++i) shifted += p[c * space + i];
      exact[c] = static_cast<double>(first.value[c * space]) +
                 shifted / static_cast<double>(a.shape.count());
      for (std::int64_t i = 0; i < space; ++i) {
        mean.value[c * space + i] = static_cast<T>(exact[c]);
      }
    }
    SumColumns<T>(
        rows, cols,
        [&](std::int64_t r, std::int64_t j, std::int64_t k, auto& s, auto&) HWY_ATTR {
          const auto v = hn::Sub(LoadSome(d, x + r * stride + j, k), hn::Load(d, mean.value + j));
          s = hn::Mul(v, v);
        },
        p, q);
    for (std::int64_t c = 0; c < n; ++c) {
      double squares = 0;
      for (std::int64_t i = 0; i < space; ++i) squares += p[c * space + i];
      a.keep(c0 + c, a.moments(c0 + c, exact[c], squares));
    }
  }
  for (std::int64_t j = 0; j < cols; ++j) {
    const std::int64_t c = c0 + j / space;
    mean.value[j] = a.mean[c];
    rstd.value[j] = a.rstd[c];
    gain.value[j] = a.gain(c);
    shift.value[j] = a.shift(c);
  }
  // for r, j: y[j] = (x[j] - mean[j]) * rstd[j] * gain[j] + shift[j];
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* HWY_RESTRICT from = x + r * stride;
    T* HWY_RESTRICT to = a.y + c0 * space + r * stride;
    for (std::int64_t j = 0; j < cols; j += lanes) {
      const auto z = hn::Mul(hn::Sub(LoadSome(d, from + j, cols - j), hn::Load(d, mean.value + j)),
                             hn::Load(d, rstd.value + j));
      StoreSome(hn::MulAdd(z, hn::Load(d, gain.value + j), hn::Load(d, shift.value + j)), d, to + j,
                cols - j);
    }
  }
}

template <class T>
HWY_NOINLINE void ColumnsBackward(const ChannelsTask<T>& a, std::int64_t c0, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t space = a.shape.space, stride = a.shape.channels * space, cols = n * space;
  const std::int64_t rows = a.shape.samples;
  const T* HWY_RESTRICT x = a.x + c0 * space;
  const T* HWY_RESTRICT dy = a.dy + c0 * space;
  Columns<T> mean, rstd, scale, c1, c2;
  for (std::int64_t j = 0; j < cols; ++j) {
    const std::int64_t c = c0 + j / space;
    mean.value[j] = a.mean[c];
    rstd.value[j] = a.rstd[c];
    scale.value[j] = a.gain(c) * a.rstd[c];
  }
  const auto normalised = [&](std::int64_t at, std::int64_t j, std::int64_t k) HWY_ATTR {
    return hn::Mul(hn::Sub(LoadSome(d, x + at, k), hn::Load(d, mean.value + j)),
                   hn::Load(d, rstd.value + j));
  };
  double p[kColumns], q[kColumns];
  SumColumns<T>(
      rows, cols,
      [&](std::int64_t r, std::int64_t j, std::int64_t k, auto& s, auto& t) HWY_ATTR {
        if (j == 0) {
          const std::int64_t ahead = HWY_MIN(r + kRowsAhead, rows - 1) * stride;
          PrefetchRun(x + ahead, cols);
          PrefetchRun(dy + ahead, cols);
        }
        s = LoadSome(d, dy + r * stride + j, k);
        t = hn::Mul(s, normalised(r * stride + j, j, k));
      },
      p, q);
  const double count = static_cast<double>(a.shape.count());
  for (std::int64_t c = 0; c < n; ++c) {
    double sum = 0, product = 0;
    for (std::int64_t i = 0; i < space; ++i) {
      sum += p[c * space + i];
      product += q[c * space + i];
    }
    a.keep_sums(c0 + c, sum, product);
    for (std::int64_t i = 0; i < space && !a.given; ++i) {
      c1.value[c * space + i] = static_cast<T>(sum / count);
      c2.value[c * space + i] = static_cast<T>(product / count);
    }
  }
  if (!a.out.dx) return;
  // for r, j: dx[j] = scale[j] * (dy[j] - c1[j] - z[j] * c2[j]);
  for (std::int64_t r = 0; r < rows; ++r) {
    T* HWY_RESTRICT dx = a.out.dx + c0 * space + r * stride;
    for (std::int64_t j = 0; j < cols; j += lanes) {
      const std::int64_t k = cols - j;
      const auto z = normalised(r * stride + j, j, k);
      const auto both = hn::MulAdd(z, hn::Load(d, c2.value + j), hn::Load(d, c1.value + j));
      const auto v =
          hn::Mul(hn::Load(d, scale.value + j), hn::Sub(LoadSome(d, dy + r * stride + j, k), both));
      StoreSome(a.out.accumulate_dx ? hn::Add(LoadSome(d, dx + j, k), v) : v, d, dx + j, k);
    }
  }
}

// Blocks begin..end-1: a channel each, or a block of columns each.
template <class T>
HWY_INLINE void RunBlocks(const ChannelsTask<T>& a, std::int64_t begin, std::int64_t end,
                          std::int64_t width) {
  for (std::int64_t b = begin; b < end; ++b) {
    const std::int64_t c0 = b * width, n = HWY_MIN(width, a.shape.channels - c0);
    if (a.shape.space >= kShortRun) {
      a.dy ? RunsBackward(a, c0) : RunsForward(a, c0);
    } else {
      a.dy ? ColumnsBackward(a, c0, n) : ColumnsForward(a, c0, n);
    }
  }
}

void BlocksF32(const ChannelsTask<float>& a, std::int64_t b, std::int64_t e, std::int64_t width) {
  RunBlocks(a, b, e, width);
}
void BlocksF64(const ChannelsTask<double>& a, std::int64_t b, std::int64_t e, std::int64_t width) {
  RunBlocks(a, b, e, width);
}

}  // namespace norma::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace norma::kernels {
namespace {

HWY_EXPORT(BlocksF32);
HWY_EXPORT(BlocksF64);

void run(const ChannelsTask<float>& a, std::int64_t b, std::int64_t e, std::int64_t width) {
  HWY_DYNAMIC_DISPATCH(BlocksF32)(a, b, e, width);
}
void run(const ChannelsTask<double>& a, std::int64_t b, std::int64_t e, std::int64_t width) {
  HWY_DYNAMIC_DISPATCH(BlocksF64)(a, b, e, width);
}

template <class T>
void run_all(const ChannelsTask<T>& a) {
  const ChannelsShape& s = a.shape;
  if (s.space == 0 || s.channels == 0) return;
  const std::int64_t width = s.space >= kShortRun ? 1 : kColumns / s.space;
  const std::int64_t blocks = (s.channels + width - 1) / width;
  const std::int64_t elements = std::max<std::int64_t>(1, s.count() * width);
  parallel_for(blocks, std::max<std::int64_t>(1, 32768 / elements),
               [&](std::int64_t b, std::int64_t e) { run(a, b, e, width); });
}

template <class T>
void backward(const ChannelsShape& shape, bool given, const T* dy, const T* x, const T* weight,
              const T* mean, const T* rstd, const NormGradients<T>& out) {
  if (shape.count() == 0) {
    const auto clear = [&](T* p, bool accumulate) {
      if (p && !accumulate) std::fill(p, p + shape.channels, T{0});
    };
    clear(out.dweight, out.accumulate_dweight);
    clear(out.dbias, out.accumulate_dbias);
    return;
  }
  // The statistics are only read here.
  run_all(ChannelsTask<T>{shape, given, x, dy, weight, nullptr, nullptr, const_cast<T*>(mean),
                          nullptr, const_cast<T*>(rstd), out});
}

}  // namespace

void norm_channels_forward(const ChannelsShape& shape, const float* x, const float* weight,
                           const float* bias, float* y, float* mean, float* var, float* rstd) {
  if (shape.count() == 0) return;
  run_all(ChannelsTask<float>{shape, false, x, nullptr, weight, bias, y, mean, var, rstd, {}});
}
void norm_channels_forward(const ChannelsShape& shape, const double* x, const double* weight,
                           const double* bias, double* y, double* mean, double* var, double* rstd) {
  if (shape.count() == 0) return;
  run_all(ChannelsTask<double>{shape, false, x, nullptr, weight, bias, y, mean, var, rstd, {}});
}
void norm_channels_apply(const ChannelsShape& shape, const float* x, const float* weight,
                         const float* bias, const float* mean, const float* rstd, float* y) {
  run_all(ChannelsTask<float>{shape,
                              true,
                              x,
                              nullptr,
                              weight,
                              bias,
                              y,
                              const_cast<float*>(mean),
                              nullptr,
                              const_cast<float*>(rstd),
                              {}});
}
void norm_channels_apply(const ChannelsShape& shape, const double* x, const double* weight,
                         const double* bias, const double* mean, const double* rstd, double* y) {
  run_all(ChannelsTask<double>{shape,
                               true,
                               x,
                               nullptr,
                               weight,
                               bias,
                               y,
                               const_cast<double*>(mean),
                               nullptr,
                               const_cast<double*>(rstd),
                               {}});
}
void norm_channels_backward(const ChannelsShape& shape, bool given, const float* dy, const float* x,
                            const float* weight, const float* mean, const float* rstd,
                            const NormGradients<float>& out) {
  backward(shape, given, dy, x, weight, mean, rstd, out);
}
void norm_channels_backward(const ChannelsShape& shape, bool given, const double* dy,
                            const double* x, const double* weight, const double* mean,
                            const double* rstd, const NormGradients<double>& out) {
  backward(shape, given, dy, x, weight, mean, rstd, out);
}

}  // namespace norma::kernels
#endif  // HWY_ONCE
