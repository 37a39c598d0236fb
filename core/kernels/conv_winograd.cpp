// Note [Winograd]. A tile of 2 x 2 outputs reads 4 x 4 inputs d. With the matrices
//
//   B^T = [1  0 -1  0]   G = [ 1   0   0 ]   A^T = [1  1  1  0]
//         [0  1  1  0]       [1/2  1/2 1/2]        [0  1 -1 -1]
//         [0 -1  1  0]       [1/2 -1/2 1/2]
//         [0  1  0 -1]       [ 0   0   1 ]
//
// the tile is y = A^T [(G w G^T) * (B^T d B)] A with an elementwise product of 16 terms, where the
// sum takes 36; over channels and tiles it becomes 16 matrix products. The gradient of the input is
// the same with the kernel turned around. The gradient of the weight is the adjoint in w:
// dw = G^T [sum over tiles of (A dy A^T) * (B^T d B)] G.
//
// Images are turned into (pixel, channel) order on the way, a few rows at a time, so that all
// transforms run in vectors of channels. A block of tiles stays in the second-level cache from the
// image to the result.
#include "core/kernels/conv_winograd.h"

#include <algorithm>

#include "core/kernels/divide.h"
#include "core/kernels/scratch.h"
#include "core/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/conv_winograd.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "core/kernels/conv_winograd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace norma::kernels::HWY_NAMESPACE {
namespace {

#define NORMA_TARGET_FUNCTIONS(T, suffix)                                                       \
  void Weight##suffix(const T* w, std::int64_t step_in, std::int64_t step_out, bool flip,       \
                      std::int64_t begin, std::int64_t end, std::int64_t inputs,                \
                      std::int64_t outputs, std::int64_t padded, T* u) {                        \
    transform_weight(w, step_in, step_out, flip, begin, end, inputs, outputs, padded, u);       \
  }                                                                                             \
  void Forward##suffix(const Image& in, const Image& out, const Tiles& tiles, const T* x,       \
                       const T* u, const T* bias, std::int64_t begin, std::int64_t end, T* y) { \
    Forward(in, out, tiles, x, u, bias, begin, end, y);                                         \
  }                                                                                             \
  void Gradient##suffix(const Image& in, const Image& out, const Tiles& tiles, const T* x,      \
                        const T* dy, std::int64_t begin, std::int64_t end, bool add, T* sums) { \
    Gradient(in, out, tiles, x, dy, begin, end, add, sums);                                     \
  }                                                                                             \
  void Finish##suffix(const T* sums, std::int64_t chunks, std::int64_t chunk_step,              \
                      std::int64_t point_step, std::int64_t channels, std::int64_t padded,      \
                      bool accumulate, T* lines, T* dweight) {                                  \
    finish_gradient(sums, chunks, chunk_step, point_step, channels, padded, accumulate, lines,  \
                    dweight);                                                                   \
  }
NORMA_TARGET_FUNCTIONS(float, F32)
NORMA_TARGET_FUNCTIONS(double, F64)
#undef NORMA_TARGET_FUNCTIONS

}  // namespace
}  // namespace norma::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace norma::kernels {

HWY_EXPORT(WeightF32);
HWY_EXPORT(WeightF64);
HWY_EXPORT(ForwardF32);
HWY_EXPORT(ForwardF64);
HWY_EXPORT(GradientF32);
HWY_EXPORT(GradientF64);
HWY_EXPORT(FinishF32);
HWY_EXPORT(FinishF64);

namespace {

#define NORMA_DISPATCH(T, suffix)                                                               \
  void transform_weight(const T* w, std::int64_t step_in, std::int64_t step_out, bool flip,     \
                        std::int64_t begin, std::int64_t end, std::int64_t inputs,              \
                        std::int64_t outputs, std::int64_t padded, T* u) {                      \
    HWY_DYNAMIC_DISPATCH(Weight##suffix)                                                        \
    (w, step_in, step_out, flip, begin, end, inputs, outputs, padded, u);                       \
  }                                                                                             \
  void forward(const Image& in, const Image& out, const Tiles& tiles, const T* x, const T* u,   \
               const T* bias, std::int64_t begin, std::int64_t end, T* y) {                     \
    HWY_DYNAMIC_DISPATCH(Forward##suffix)(in, out, tiles, x, u, bias, begin, end, y);           \
  }                                                                                             \
  void gradient(const Image& in, const Image& out, const Tiles& tiles, const T* x, const T* dy, \
                std::int64_t begin, std::int64_t end, bool add, T* sums) {                      \
    HWY_DYNAMIC_DISPATCH(Gradient##suffix)(in, out, tiles, x, dy, begin, end, add, sums);       \
  }                                                                                             \
  void finish_gradient(const T* sums, std::int64_t chunks, std::int64_t chunk_step,             \
                       std::int64_t point_step, std::int64_t channels, std::int64_t padded,     \
                       bool accumulate, T* lines, T* dweight) {                                 \
    HWY_DYNAMIC_DISPATCH(Finish##suffix)                                                        \
    (sums, chunks, chunk_step, point_step, channels, padded, accumulate, lines, dweight);       \
  }
NORMA_DISPATCH(float, F32)
NORMA_DISPATCH(double, F64)
#undef NORMA_DISPATCH

// Most tiles of a block: a product of 128 rows reads its right side as it lies.
constexpr std::int64_t kBlockTiles = 128;
// Transformed elements of a block, of input and output: 640 KiB of f32, in the second-level cache
// beside the weights that run through it.
constexpr std::int64_t kBlockElements = 160 * 1024;
// Partial sums of a weight gradient, and the elements that all of them together may take.
constexpr std::int64_t kPartials = 8;
constexpr std::int64_t kPartialElements = 16 * 1024 * 1024;

Image image_of(std::int64_t channels, std::int64_t h, std::int64_t w, std::int64_t row0,
               std::int64_t col0) {
  return {channels, h, w, row0, col0, round_up(channels, kChannelStep)};
}

Tiles tiles_of(std::int64_t n, const Image& out) {
  const std::int64_t down = (out.h + 1) / 2;
  return {n * down, down, (out.w + 1) / 2};
}

// Rows of tiles of a block: enough blocks for 8 threads, alike in size, at most `limit` tiles.
std::int64_t block_rows(const Tiles& t, std::int64_t limit) {
  const std::int64_t most = std::max<std::int64_t>(1, limit / t.across);
  const std::int64_t blocks = std::max<std::int64_t>(1, round_up(divide_up(t.rows, most), 8));
  return std::max<std::int64_t>(1, divide_up(t.rows, blocks));
}

template <class T>
void convolve(std::int64_t n, const Image& in, const Image& out, const T* x, const T* weight,
              std::int64_t step_in, std::int64_t step_out, bool flip, const T* bias, T* y) {
  if (n == 0) return;
  T* u = scratch<T>(Scratch::weights,
                    kPoints * in.channels * round_up(out.padded, kGroup) + out.padded);
  T* padded_bias = u + kPoints * in.channels * round_up(out.padded, kGroup);
  std::fill_n(padded_bias, out.padded, T(0));
  if (bias) std::copy_n(bias, out.channels, padded_bias);
  const std::int64_t kernels_of_chunk = 1024;
  parallel_for(in.channels, 1 + kernels_of_chunk / out.channels,
               [&](std::int64_t begin, std::int64_t end) {
                 transform_weight(weight, step_in, step_out, flip, begin, end, in.channels,
                                  out.channels, out.padded, u);
               });
  const Tiles tiles = tiles_of(n, out);
  const std::int64_t limit =
      std::clamp(kBlockElements / (kPoints * (in.padded + out.padded)), kGroup, kBlockTiles);
  parallel_for(tiles.rows, block_rows(tiles, limit), [&](std::int64_t begin, std::int64_t end) {
    forward(in, out, tiles, x, u, padded_bias, begin, end, y);
  });
}

template <class T>
void run_forward(const ConvSizes& s, const T* x, const T* weight, const T* bias, T* y) {
  convolve(s.n, image_of(s.channels, s.h, s.w, -s.padding_h, -s.padding_w),
           image_of(s.outputs, s.out_h, s.out_w, 0, 0), x, weight, std::int64_t{9}, s.channels * 9,
           false, bias, y);
}

template <class T>
void run_backward_input(const ConvSizes& s, const T* dy, const T* weight, T* dx) {
  convolve(s.n, image_of(s.outputs, s.out_h, s.out_w, s.padding_h - 2, s.padding_w - 2),
           image_of(s.channels, s.h, s.w, 0, 0), dy, weight, s.channels * 9, std::int64_t{9}, true,
           static_cast<const T*>(nullptr), dx);
}

template <class T>
void run_backward_weight(const ConvSizes& s, const T* x, const T* dy, bool accumulate, T* dweight) {
  const Image in = image_of(s.channels, s.h, s.w, -s.padding_h, -s.padding_w);
  const Image out = image_of(s.outputs, s.out_h, s.out_w, 0, 0);
  const Tiles tiles = tiles_of(s.n, out);
  const std::int64_t step = block_rows(tiles, kBlockTiles), blocks = divide_up(tiles.rows, step);
  const std::int64_t point = s.outputs * in.padded, size = kPoints * point;
  const std::int64_t most = std::clamp<std::int64_t>(kPartialElements / size, 2, kPartials);
  const std::int64_t per_chunk = divide_up(blocks, most);
  const std::int64_t chunks = per_chunk == 0 ? 0 : divide_up(blocks, per_chunk);
  T* sums = scratch<T>(Scratch::weights, std::max<std::int64_t>(1, chunks * size));
  parallel_for(chunks, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t chunk = first; chunk < last; ++chunk) {
      const std::int64_t end = std::min(tiles.rows, (chunk + 1) * per_chunk * step);
      for (std::int64_t row = chunk * per_chunk * step; row < end; row += step) {
        gradient(in, out, tiles, x, dy, row, std::min(end, row + step),
                 row != chunk * per_chunk * step, sums + chunk * size);
      }
    }
  });
  if (chunks == 0) {
    if (!accumulate) std::fill_n(dweight, s.outputs * s.channels * 9, T(0));
    return;
  }
  parallel_for(s.outputs, 1 + 1024 / s.channels, [&](std::int64_t begin, std::int64_t end) {
    T* lines = scratch<T>(Scratch::columns, (kPoints + 9) * in.padded);
    for (std::int64_t o = begin; o < end; ++o) {
      finish_gradient(sums + o * in.padded, chunks, size, point, s.channels, in.padded, accumulate,
                      lines, dweight + o * s.channels * 9);
    }
  });
}

}  // namespace

bool has_winograd(const ConvSizes& s) {
  return s.kernel_h == 3 && s.kernel_w == 3 && s.stride_h == 1 && s.stride_w == 1 &&
         s.dilation_h == 1 && s.dilation_w == 1 && s.groups == 1 && s.padding_h <= 2 &&
         s.padding_w <= 2 && s.channels >= 16 && s.outputs >= 16;
}

#define NORMA_OVERLOADS(T)                                                                         \
  void conv_winograd_forward(const ConvSizes& s, const T* x, const T* weight, const T* bias,       \
                             T* y) {                                                               \
    run_forward(s, x, weight, bias, y);                                                            \
  }                                                                                                \
  void conv_winograd_backward_input(const ConvSizes& s, const T* dy, const T* weight, T* dx) {     \
    run_backward_input(s, dy, weight, dx);                                                         \
  }                                                                                                \
  void conv_winograd_backward_weight(const ConvSizes& s, const T* x, const T* dy, bool accumulate, \
                                     T* dweight) {                                                 \
    run_backward_weight(s, x, dy, accumulate, dweight);                                            \
  }
NORMA_OVERLOADS(float)
NORMA_OVERLOADS(double)
#undef NORMA_OVERLOADS

}  // namespace norma::kernels
#endif  // HWY_ONCE
