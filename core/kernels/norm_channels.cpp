#include "core/kernels/norm_channels.h"

#include <algorithm>
#include <cmath>

#include "core/kernels/divide.h"
#include "core/kernels/moments.h"
#include "core/kernels/norm_channels_task.h"
#include "core/kernels/past_cache.h"
#include "core/parallel.h"
#include "core/storage.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/norm_channels.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "core/kernels/norm_channels-inl.h"
#include "core/kernels/norm_panels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace norma::kernels::HWY_NAMESPACE {

void FirstF32(const ChannelsTask<float>& a, std::int64_t i, std::int64_t j) { FirstPass(a, i, j); }
void FirstF64(const ChannelsTask<double>& a, std::int64_t i, std::int64_t j) { FirstPass(a, i, j); }
void SecondF32(const ChannelsTask<float>& a, std::int64_t i, std::int64_t j) {
  SecondPass(a, i, j);
}
void SecondF64(const ChannelsTask<double>& a, std::int64_t i, std::int64_t j) {
  SecondPass(a, i, j);
}
void CombineF32(const ChannelsTask<float>& a, std::int64_t j0, std::int64_t n) {
  a.dy ? CombineRows<true>(a, j0, n) : CombineRows<false>(a, j0, n);
}
void CombineF64(const ChannelsTask<double>& a, std::int64_t j0, std::int64_t n) {
  a.dy ? CombineRows<true>(a, j0, n) : CombineRows<false>(a, j0, n);
}
void PanelsF32(const ChannelsTask<float>& a, std::int64_t next, std::int64_t last, float* kept) {
  StepPanels(a, next, last, kept);
}
void PanelsF64(const ChannelsTask<double>& a, std::int64_t next, std::int64_t last, double* kept) {
  StepPanels(a, next, last, kept);
}

}  // namespace norma::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace norma::kernels {
namespace {

HWY_EXPORT(FirstF32);
HWY_EXPORT(FirstF64);
HWY_EXPORT(SecondF32);
HWY_EXPORT(SecondF64);
HWY_EXPORT(CombineF32);
HWY_EXPORT(CombineF64);
HWY_EXPORT(PanelsF32);
HWY_EXPORT(PanelsF64);

void first_pass(const ChannelsTask<float>& a, std::int64_t i, std::int64_t j) {
  HWY_DYNAMIC_DISPATCH(FirstF32)(a, i, j);
}
void first_pass(const ChannelsTask<double>& a, std::int64_t i, std::int64_t j) {
  HWY_DYNAMIC_DISPATCH(FirstF64)(a, i, j);
}
void second_pass(const ChannelsTask<float>& a, std::int64_t i, std::int64_t j) {
  HWY_DYNAMIC_DISPATCH(SecondF32)(a, i, j);
}
void second_pass(const ChannelsTask<double>& a, std::int64_t i, std::int64_t j) {
  HWY_DYNAMIC_DISPATCH(SecondF64)(a, i, j);
}

void combine_rows(const ChannelsTask<float>& a, std::int64_t j0, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(CombineF32)(a, j0, n);
}
void combine_rows(const ChannelsTask<double>& a, std::int64_t j0, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(CombineF64)(a, j0, n);
}
void step_panels(const ChannelsTask<float>& a, std::int64_t next, std::int64_t last, float* kept) {
  HWY_DYNAMIC_DISPATCH(PanelsF32)(a, next, last, kept);
}
void step_panels(const ChannelsTask<double>& a, std::int64_t next, std::int64_t last,
                 double* kept) {
  HWY_DYNAMIC_DISPATCH(PanelsF64)(a, next, last, kept);
}

// A function of the shape alone; see Note [Fixed chunks].
Pieces cut(const ChannelsShape& s) {
  Pieces p;
  p.runs = s.space >= kShortRun;
  p.rows = p.runs ? kRunRows : kRows;
  p.width = std::clamp<std::int64_t>((p.runs ? kRunElements : kColumns) / s.space, 1, s.channels);
  p.across = divide_up(s.channels, p.width);
  p.down = divide_up(s.samples, p.rows);
  p.columns = p.runs ? 1 : s.space;
  p.length = p.runs ? s.space : 1;
  return p;
}

// Columns whose sums are added up together.
constexpr std::int64_t kColumnsTogether = 64;

// mean, var and rstd of a channel from those of its columns.
template <class T>
void keep_moments(const ChannelsTask<T>& a, std::int64_t c) {
  const double count = static_cast<double>(a.shape.count());
  const double each = static_cast<double>(a.shape.samples * a.pieces.length);
  const std::int64_t columns = a.pieces.columns, space = a.shape.space;
  const double* first = a.first + c * columns;
  const double* second = a.second + c * columns;
  double shifted = 0, squares = 0;
  for (std::int64_t i = 1; i < columns; ++i) shifted += each * (first[i] - first[0]);
  Moments m;
  m.mean = first[0] + shifted / count;
  for (std::int64_t i = 0; i < columns; ++i) {
    squares += second[i] + each * (first[i] - m.mean) * (first[i] - m.mean);
  }
  m.var = std::isfinite(squares) ? std::max(0.0, squares / count) : squares;
  m.rstd = reciprocal_deviation(m.var, a.shape.eps);
  if (!in_range<T>(m.var, a.shape.eps)) {
    m = scaled_moments(a.shape.count(), true, a.shape.eps, [&](std::int64_t i) {
      return a.x[i / space * a.stride() + c * space + i % space];
    });
  }
  a.mean[c] = static_cast<T>(m.mean);
  a.var[c] = static_cast<T>(m.var);
  a.rstd[c] = static_cast<T>(m.rstd);
}

// dweight and dbias of a channel, and the lines that dx takes from them.
template <class T>
void keep_products(const ChannelsTask<T>& a, std::int64_t c) {
  const double count = static_cast<double>(a.shape.count());
  double sum = 0, product = 0;
  for (std::int64_t i = c * a.pieces.columns; i < (c + 1) * a.pieces.columns; ++i) {
    sum += a.first[i];
    product += a.second[i];
  }
  const auto put = [&](T* to, bool accumulate, double value) {
    if (to) to[c] = (accumulate ? to[c] : T{0}) + static_cast<T>(value);
  };
  put(a.out.dbias, a.out.accumulate_dbias, sum);
  put(a.out.dweight, a.out.accumulate_dweight, product);
  if (a.given) return;  // the lines stay 0
  for (std::int64_t i = c * a.pieces.columns; i < (c + 1) * a.pieces.columns; ++i) {
    a.lines[3][i] = static_cast<T>(sum / count);
    a.lines[4][i] = static_cast<T>(product / count);
  }
}

// The lines of the channels that do not depend on sums of dy.
template <class T>
void fill_lines(const ChannelsTask<T>& a, std::int64_t c0, std::int64_t c1) {
  for (std::int64_t c = c0; c < c1; ++c) {
    const T gain = a.weight ? a.weight[c] : T{1};
    for (std::int64_t i = c * a.pieces.columns; i < (c + 1) * a.pieces.columns; ++i) {
      a.lines[0][i] = a.mean[c];
      a.lines[1][i] = a.rstd[c];
      a.lines[2][i] = a.dy ? gain * a.rstd[c] : gain;
      a.lines[3][i] = a.bias ? a.bias[c] : T{0};
      a.lines[4][i] = T{0};
    }
  }
}

// f(begin, end) over the channels c0..c0+n-1; each costs as much as some 64 elements, and its sums.
template <class T, class F>
void for_channels(const ChannelsTask<T>& a, std::int64_t c0, std::int64_t n, const F& f) {
  const std::int64_t few = std::max<std::int64_t>(1, kColumnsTogether / a.pieces.columns);
  const std::int64_t cost = 64 + 2 * a.pieces.down * a.pieces.columns;
  parallel_for(n, divide_up(8192, cost * few) * few,
               [&](std::int64_t begin, std::int64_t end) { f(c0 + begin, c0 + end); });
}

// What the sums of the channels c0..c1-1 give, once all pieces have theirs.
template <class T>
void finish_channels(const ChannelsTask<T>& a, std::int64_t c0, std::int64_t c1) {
  for (std::int64_t c = c0; c < c1; ++c) a.dy ? keep_products(a, c) : keep_moments(a, c);
  if (!a.dy) fill_lines(a, c0, c1);
}

// All that is done with the channels of the pieces j0..j0+across-1 of a row of pieces.
template <class T>
void run_group(const ChannelsTask<T>& a, std::int64_t j0, std::int64_t across) {
  const Pieces& p = a.pieces;
  const std::int64_t c0 = j0 * p.width, n = std::min(across * p.width, a.shape.channels - c0);
  const std::int64_t pieces = p.down * across;
  const std::int64_t grain = std::max<std::int64_t>(1, 32768 / (p.rows * p.width * a.shape.space));
  if (a.dy || a.given) {
    for_channels(a, c0, n, [&](std::int64_t b, std::int64_t e) { fill_lines(a, b, e); });
  }
  if (a.first) {
    parallel_for(pieces, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) first_pass(a, i / across, j0 + i % across);
    });
    for_channels(a, c0, n, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t j = begin * p.columns; j < end * p.columns; j += kColumnsTogether) {
        combine_rows(a, j, std::min(kColumnsTogether, end * p.columns - j));
      }
      finish_channels(a, begin, end);
    });
  }
  if (a.dy && !a.out.dx) return;
  parallel_for(pieces, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) second_pass(a, i / across, j0 + i % across);
  });
}

// The first `panels` pieces of a row of them, each with all its rows. See Note [Panels]. No sum
// goes beyond a chunk, so that there may be one a thread.
template <class T>
void run_panels(const ChannelsTask<T>& a, std::int64_t panels, int threads) {
  const Pieces& p = a.pieces;
  const std::int64_t kept = p.runs ? 0 : a.shape.samples * p.width * (a.dy ? 2 : 1);
  const Ref<Storage> memory =
      Storage::allocate(threads * kept * static_cast<std::int64_t>(sizeof(T)));
  parallel_for(threads, 1, [&](std::int64_t thread, std::int64_t) {
    T* const mine = reinterpret_cast<T*>(memory->data()) + thread * kept;
    std::int64_t last = kNoPanel;
    for (std::int64_t next = thread; next < panels; last = next, next += threads) {
      const std::int64_t c0 = next * p.width, c1 = c0 + p.width;
      if (a.dy) fill_lines(a, c0, c1);
      step_panels(a, next, last, mine);
      if (p.runs) combine_rows(a, c0, p.width);
      finish_channels(a, c0, c1);
    }
    if (last != kNoPanel) step_panels(a, kNoPanel, last, mine);
  });
}

template <class T>
void run_all(ChannelsTask<T> a) {
  const ChannelsShape& s = a.shape;
  if (s.count() == 0 || s.channels == 0) return;
  const Pieces& p = a.pieces = cut(s);
  const bool sums = !a.given || a.out.dweight || a.out.dbias;
  const std::int64_t columns = a.columns(), rows = sums ? p.down : 0;
  constexpr std::int64_t kLines = ChannelsTask<T>::kLines;
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(T));
  const Ref<Storage> memory = Storage::allocate(columns * (16 * rows + kLines * kSize));
  auto* const doubles = reinterpret_cast<double*>(memory->data());
  if (sums) {
    a.first = doubles;
    a.second = doubles + rows * columns;
  }
  for (std::int64_t i = 0; i < kLines; ++i) {
    a.lines[i] = reinterpret_cast<T*>(doubles + 2 * rows * columns) + i * columns;
  }
  // The rows of a piece, and the runs in them, begin at whole lines where these do.
  const auto past = [&](std::int64_t run) {
    return past_cache(a.result(), run, a.moved_bytes(),
                      s.space == 1 ? NextReader::product : NextReader::any);
  };
  a.past = a.result() && !a.out.accumulate_dx && past(a.stride()) &&
           past(p.runs ? s.space : p.width * s.space);
  const int threads = num_threads();
  const Panels panels = panels_of<T>(s, a.dy != nullptr, threads);
  if (a.past && a.first && !a.given && panels.count > 0) {
    // Their width, as that of the pieces above, is whole lines of memory.
    a.pieces.width = panels.width;
    a.pieces.across = divide_up(s.channels, panels.width);
    run_panels(a, panels.count, threads);
    if (panels.count < p.across) run_group(a, panels.count, 1);  // the channels that are left
    return;
  }
  const std::int64_t piece_bytes = s.count() * p.width * a.element_bytes();
  const std::int64_t group =
      p.runs ? std::clamp<std::int64_t>(kNearBytes / piece_bytes, 1, p.across) : p.across;
  for (std::int64_t j = 0; j < p.across; j += group) {
    run_group(a, j, std::min(group, p.across - j));
  }
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
