// A plane is copied into a frame of zeros, so that every window lies inside of it; then each row of
// the result is a sum of shifted rows, in vectors along the width. A stride along the width
// computes the columns between as well and drops them.
#include "core/kernels/conv_depthwise.h"

#include <algorithm>

#include "core/kernels/scratch.h"
#include "core/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/conv_depthwise.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#ifndef NORMA_CONV_DEPTHWISE_ONCE
#define NORMA_CONV_DEPTHWISE_ONCE
namespace norma::kernels {
namespace {

// Elements that a vector may read behind the end of a row.
constexpr std::int64_t kSlack = 16;

// Where the elements of a plane lie in its frame of zeros.
struct Frame {
  std::int64_t rows, pitch;         // of the frame
  std::int64_t row0, col0;          // of the plane's first element; may lie outside
  std::int64_t row_step, col_step;  // from one element to the next
  [[nodiscard]] std::int64_t elements() const { return rows * pitch + kSlack; }
};

// The padded image.
Frame image_frame(const ConvSizes& s) {
  return {s.h + 2 * s.padding_h, s.w + 2 * s.padding_w + kSlack, s.padding_h, s.padding_w, 1, 1};
}
// The gradient with its elements `stride` apart, such that the gradient of the image is a sum of
// shifted rows of it.
Frame gradient_frame(const ConvSizes& s) {
  const std::int64_t reach_h = (s.kernel_h - 1) * s.dilation_h;
  const std::int64_t reach_w = (s.kernel_w - 1) * s.dilation_w;
  return {s.h + reach_h,
          s.w + reach_w + kSlack,
          reach_h - s.padding_h,
          reach_w - s.padding_w,
          s.stride_h,
          s.stride_w};
}

template <class T>
void fill_frame(const Frame& f, const T* plane, std::int64_t h, std::int64_t w, T* to) {
  std::fill_n(to, f.elements(), T(0));
  const std::int64_t width = f.pitch - kSlack;
  for (std::int64_t i = 0; i < h; ++i) {
    const std::int64_t row = f.row0 + i * f.row_step;
    if (row < 0 || row >= f.rows) continue;
    if (f.col_step == 1) {
      const std::int64_t first = std::clamp<std::int64_t>(-f.col0, 0, w);
      const std::int64_t last = std::clamp(width - f.col0, first, w);
      std::copy(plane + i * w + first, plane + i * w + last, to + row * f.pitch + f.col0 + first);
      continue;
    }
    for (std::int64_t j = 0; j < w; ++j) {
      const std::int64_t col = f.col0 + j * f.col_step;
      if (col >= 0 && col < width) to[row * f.pitch + col] = plane[i * w + j];
    }
  }
}

}  // namespace
}  // namespace norma::kernels
#endif  // NORMA_CONV_DEPTHWISE_ONCE

HWY_BEFORE_NAMESPACE();
namespace norma::kernels::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// out[j] = first + sum over a, b of w[a * kw + b] frame[a * step_a + b * step_b + j] for j < n, or
// added to out. kHeight and kWidth are the kernel's, or 0 if known only at run time.
template <int kHeight, int kWidth, class T>
HWY_INLINE void correlate_row(const T* frame, std::int64_t step_a, std::int64_t step_b, const T* w,
                              std::int64_t height, std::int64_t width, T first, bool add,
                              std::int64_t n, T* out) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t kh = kHeight ? kHeight : height, kw = kWidth ? kWidth : width;
  for (std::int64_t j = 0; j < n; j += lanes) {
    auto sum = hn::Set(d, first);
    for (std::int64_t a = 0; a < kh; ++a) {
      for (std::int64_t b = 0; b < kw; ++b) {
        sum = hn::MulAdd(hn::Set(d, w[a * kw + b]),
                         hn::LoadU(d, frame + a * step_a + b * step_b + j), sum);
      }
    }
    if (j + lanes <= n) {
      if (add) sum = hn::Add(sum, hn::LoadU(d, out + j));
      hn::StoreU(sum, d, out + j);
      continue;
    }
#if HWY_TARGET <= HWY_AVX2
    // Masked memory access is one instruction here, and touches nothing behind the row.
    const auto inside = hn::FirstN(d, static_cast<std::size_t>(n - j));
    if (add) sum = hn::Add(sum, hn::MaskedLoad(inside, d, out + j));
    hn::BlendedStore(sum, inside, d, out + j);
#else
    HWY_ALIGN T line[HWY_LANES(T)];
    hn::Store(sum, d, line);
    for (std::int64_t k = 0; j + k < n; ++k) out[j + k] = add ? out[j + k] + line[k] : line[k];
#endif
  }
}

// out (rows, cols) = first + the correlation of a frame with a kernel, or added to out. Rows are
// `row_step` apart in the frame, columns `col_step`. `line` holds a row of all columns.
template <class T>
void Correlate(const ConvSizes& s, const T* frame, std::int64_t pitch, const T* w, T first,
               bool add, std::int64_t row_step, std::int64_t col_step, std::int64_t rows,
               std::int64_t cols, T* line, T* out) {
  const std::int64_t all = (cols - 1) * col_step + 1;
  for (std::int64_t i = 0; i < rows; ++i) {
    const T* from = frame + i * row_step * pitch;
    T* to = out + i * cols;
    T* sums = col_step == 1 ? to : line;
    const bool into = add && col_step == 1;
    if (s.kernel_h == 3 && s.kernel_w == 3) {
      correlate_row<3, 3>(from, s.dilation_h * pitch, s.dilation_w, w, 3, 3, first, into, all,
                          sums);
    } else {
      correlate_row<0, 0>(from, s.dilation_h * pitch, s.dilation_w, w, s.kernel_h, s.kernel_w,
                          first, into, all, sums);
    }
    if (col_step == 1) continue;
    for (std::int64_t j = 0; j < cols; ++j) {
      to[j] = add ? to[j] + line[j * col_step] : line[j * col_step];
    }
  }
}

// sums[a * kw + b] += sum over i, j of dy[i, j] frame[i row_step + a step_a, j + b step_b], where
// dy has rows of `cols` elements, `dy_pitch` apart, with zeros behind them.
template <int kTaps, class T>
HWY_INLINE void dot_rows(const ConvSizes& s, const T* frame, std::int64_t pitch, const T* dy,
                         std::int64_t dy_pitch, std::int64_t cols, std::int64_t a, double* sums) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t b = 0; b < s.kernel_w; b += kTaps) {
    V sum[kTaps];
    for (int k = 0; k < kTaps; ++k) sum[k] = hn::Zero(d);
    for (std::int64_t i = 0; i < s.out_h; ++i) {
      const T* row = frame + (i * s.stride_h + a * s.dilation_h) * pitch;
      for (std::int64_t j = 0; j < cols; j += lanes) {
        const V g = hn::LoadU(d, dy + i * dy_pitch + j);
        for (int k = 0; k < kTaps; ++k) {
          sum[k] = hn::MulAdd(g, hn::LoadU(d, row + (b + k) * s.dilation_w + j), sum[k]);
        }
      }
    }
    for (int k = 0; k < kTaps; ++k) {
      sums[a * s.kernel_w + b + k] += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sum[k])));
    }
  }
}

template <class T>
void Dot(const ConvSizes& s, const T* frame, std::int64_t pitch, const T* dy, std::int64_t dy_pitch,
         double* sums) {
  const std::int64_t cols = (s.out_w - 1) * s.stride_w + 1;
  for (std::int64_t a = 0; a < s.kernel_h; ++a) {
    if (s.kernel_w % 3 == 0) {
      dot_rows<3>(s, frame, pitch, dy, dy_pitch, cols, a, sums);
    } else {
      dot_rows<1>(s, frame, pitch, dy, dy_pitch, cols, a, sums);
    }
  }
}

#define NORMA_TARGET_FUNCTIONS(T, suffix)                                                    \
  void Correlate##suffix(const ConvSizes& s, const T* frame, std::int64_t pitch, const T* w, \
                         T first, bool add, std::int64_t row_step, std::int64_t col_step,    \
                         std::int64_t rows, std::int64_t cols, T* line, T* out) {            \
    Correlate(s, frame, pitch, w, first, add, row_step, col_step, rows, cols, line, out);    \
  }                                                                                          \
  void Dot##suffix(const ConvSizes& s, const T* frame, std::int64_t pitch, const T* dy,      \
                   std::int64_t dy_pitch, double* sums) {                                    \
    Dot(s, frame, pitch, dy, dy_pitch, sums);                                                \
  }
NORMA_TARGET_FUNCTIONS(float, F32)
NORMA_TARGET_FUNCTIONS(double, F64)
#undef NORMA_TARGET_FUNCTIONS

}  // namespace
}  // namespace norma::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace norma::kernels {

HWY_EXPORT(CorrelateF32);
HWY_EXPORT(CorrelateF64);
HWY_EXPORT(DotF32);
HWY_EXPORT(DotF64);

namespace {

#define NORMA_DISPATCH(T, suffix)                                                             \
  void correlate(const ConvSizes& s, const T* frame, std::int64_t pitch, const T* w, T first, \
                 bool add, std::int64_t row_step, std::int64_t col_step, std::int64_t rows,   \
                 std::int64_t cols, T* line, T* out) {                                        \
    HWY_DYNAMIC_DISPATCH(Correlate##suffix)                                                   \
    (s, frame, pitch, w, first, add, row_step, col_step, rows, cols, line, out);              \
  }                                                                                           \
  void dot(const ConvSizes& s, const T* frame, std::int64_t pitch, const T* dy,               \
           std::int64_t dy_pitch, double* sums) {                                             \
    HWY_DYNAMIC_DISPATCH(Dot##suffix)(s, frame, pitch, dy, dy_pitch, sums);                   \
  }
NORMA_DISPATCH(float, F32)
NORMA_DISPATCH(double, F64)
#undef NORMA_DISPATCH

// Planes of a chunk of a parallel loop: about 256k multiplications.
std::int64_t grain_of(const ConvSizes& s) {
  const std::int64_t products =
      s.group_outputs() * s.taps() * std::max(s.out_pixels(), s.in_pixels());
  return 1 + 262144 / std::max<std::int64_t>(1, products);
}

template <class T>
void run_forward(const ConvSizes& s, const T* x, const T* weight, const T* bias, T* y) {
  const Frame f = image_frame(s);
  const std::int64_t outs = s.group_outputs();
  parallel_for(s.n * s.channels, grain_of(s), [&](std::int64_t begin, std::int64_t end) {
    T* frame = scratch<T>(Scratch::columns, f.elements());
    T* line = scratch<T>(Scratch::product, f.pitch);
    for (std::int64_t plane = begin; plane < end; ++plane) {
      fill_frame(f, x + plane * s.in_pixels(), s.h, s.w, frame);
      for (std::int64_t k = 0; k < outs; ++k) {
        const std::int64_t o = plane % s.channels * outs + k;
        correlate(s, frame, f.pitch, weight + o * s.taps(), bias ? bias[o] : T(0), false,
                  s.stride_h, s.stride_w, s.out_h, s.out_w, line,
                  y + (plane * outs + k) * s.out_pixels());
      }
    }
  });
}

template <class T>
void run_backward_input(const ConvSizes& s, const T* dy, const T* weight, T* dx) {
  const Frame f = gradient_frame(s);
  const std::int64_t outs = s.group_outputs(), taps = s.taps();
  parallel_for(s.n * s.channels, grain_of(s), [&](std::int64_t begin, std::int64_t end) {
    T* frame = scratch<T>(Scratch::columns, f.elements());
    T* turned = scratch<T>(Scratch::product, taps);
    for (std::int64_t plane = begin; plane < end; ++plane) {
      for (std::int64_t k = 0; k < outs; ++k) {
        const T* w = weight + (plane % s.channels * outs + k) * taps;
        std::reverse_copy(w, w + taps, turned);
        fill_frame(f, dy + (plane * outs + k) * s.out_pixels(), s.out_h, s.out_w, frame);
        correlate(s, frame, f.pitch, turned, T(0), k > 0, std::int64_t{1}, std::int64_t{1}, s.h,
                  s.w, static_cast<T*>(nullptr), dx + plane * s.in_pixels());
      }
    }
  });
}

template <class T>
void run_backward_weight(const ConvSizes& s, const T* x, const T* dy, bool accumulate, T* dweight) {
  const Frame f = image_frame(s);
  const Frame g{s.out_h, (s.out_w - 1) * s.stride_w + 1 + kSlack, 0, 0, 1, s.stride_w};
  const std::int64_t outs = s.group_outputs(), taps = s.taps();
  const std::int64_t grain = 1 + (grain_of(s) - 1) / std::max<std::int64_t>(1, s.n);
  parallel_for(s.channels, grain, [&](std::int64_t begin, std::int64_t end) {
    T* frame = scratch<T>(Scratch::columns, f.elements());
    T* grad = scratch<T>(Scratch::product, g.elements());
    double* sums = scratch<double>(Scratch::transformed, outs * taps);
    for (std::int64_t c = begin; c < end; ++c) {
      std::fill_n(sums, outs * taps, 0.0);
      for (std::int64_t i = 0; i < s.n; ++i) {
        const std::int64_t plane = i * s.channels + c;
        fill_frame(f, x + plane * s.in_pixels(), s.h, s.w, frame);
        for (std::int64_t k = 0; k < outs; ++k) {
          fill_frame(g, dy + (plane * outs + k) * s.out_pixels(), s.out_h, s.out_w, grad);
          dot(s, frame, f.pitch, grad, g.pitch, sums + k * taps);
        }
      }
      T* to = dweight + c * outs * taps;
      for (std::int64_t k = 0; k < outs * taps; ++k) {
        to[k] = static_cast<T>(accumulate ? static_cast<double>(to[k]) + sums[k] : sums[k]);
      }
    }
  });
}

}  // namespace

#define NORMA_OVERLOADS(T)                                                                      \
  void conv_depthwise_forward(const ConvSizes& s, const T* x, const T* weight, const T* bias,   \
                              T* y) {                                                           \
    run_forward(s, x, weight, bias, y);                                                         \
  }                                                                                             \
  void conv_depthwise_backward_input(const ConvSizes& s, const T* dy, const T* weight, T* dx) { \
    run_backward_input(s, dy, weight, dx);                                                      \
  }                                                                                             \
  void conv_depthwise_backward_weight(const ConvSizes& s, const T* x, const T* dy,              \
                                      bool accumulate, T* dweight) {                            \
    run_backward_weight(s, x, dy, accumulate, dweight);                                         \
  }
NORMA_OVERLOADS(float)
NORMA_OVERLOADS(double)
#undef NORMA_OVERLOADS

}  // namespace norma::kernels
#endif  // HWY_ONCE
