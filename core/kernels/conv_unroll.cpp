#include "core/kernels/conv_unroll.h"

#include <algorithm>

#include "core/kernels/divide.h"
#include "core/kernels/gemm.h"
#include "core/kernels/scratch.h"
#include "core/parallel.h"

namespace norma::kernels {
namespace {

// Elements of an unrolled block: 256 KiB of f32, a part of the second-level cache.
constexpr std::int64_t kBlockElements = 65536;
// Multiplications that are worth a chunk of a parallel loop, as for products.
constexpr std::int64_t kChunkProducts = 512 * 1024;
// Partial sums of a weight gradient, and the elements that all of them together may take.
constexpr std::int64_t kPartials = 8;
constexpr std::int64_t kPartialElements = 8 * 1024 * 1024;

// True iff the unrolled image is the image itself.
bool is_pointwise(const ConvSizes& s) {
  return s.taps() == 1 && s.stride_h == 1 && s.stride_w == 1 && s.padding_h == 0 &&
         s.padding_w == 0;
}

// Pixels of a block: of y, unrolled to `rows` elements each.
std::int64_t block_pixels(const ConvSizes& s, std::int64_t rows) {
  const std::int64_t most = std::clamp<std::int64_t>(kBlockElements / rows, 64, 1024);
  const std::int64_t blocks = divide_up(s.out_pixels(), most);
  return divide_up(divide_up(s.out_pixels(), blocks), 32) * 32;
}

// Columns first..last-1 of one row of y that read inside of the image, for a tap at `shift`.
struct Span {
  std::int64_t first, last;
};
Span inside(std::int64_t shift, std::int64_t stride, std::int64_t size, std::int64_t begin,
            std::int64_t end) {
  const std::int64_t first = shift >= 0 ? 0 : divide_up(-shift, stride);
  const std::int64_t last = size - shift <= 0 ? 0 : divide_up(size - shift, stride);
  const std::int64_t from = std::clamp(first, begin, end);
  return {from, std::clamp(last, from, end)};
}

// Calls f(row of the block, offset in the block, span, image row or -1, shift) for every run of
// pixels p0..p1-1 that lies in one row of y, for every tap of `channels` channels.
template <class F>
void for_each_run(const ConvSizes& s, std::int64_t channels, std::int64_t p0, std::int64_t p1,
                  F&& f) {
  std::int64_t row = 0;
  for (std::int64_t c = 0; c < channels; ++c) {
    for (std::int64_t a = 0; a < s.kernel_h; ++a) {
      for (std::int64_t b = 0; b < s.kernel_w; ++b, ++row) {
        const std::int64_t shift = b * s.dilation_w - s.padding_w;
        std::int64_t i = p0 / s.out_w, j = p0 % s.out_w;
        for (std::int64_t p = p0; p < p1; ++i, j = 0) {
          const std::int64_t end = std::min(s.out_w, j + p1 - p);
          const std::int64_t y = i * s.stride_h + a * s.dilation_h - s.padding_h;
          const bool in = y >= 0 && y < s.h;
          const Span span = in ? inside(shift, s.stride_w, s.w, j, end) : Span{end, end};
          f(row, p - p0 - j, j, end, span, (c * s.h + (in ? y : 0)) * s.w + shift);
          p += end - j;
        }
      }
    }
  }
}

// columns (channels * taps, p1 - p0) = the elements of x that each pixel of y reads.
template <class T>
void unroll(const ConvSizes& s, const T* x, std::int64_t channels, std::int64_t p0, std::int64_t p1,
            T* columns) {
  const std::int64_t pixels = p1 - p0, stride = s.stride_w;
  for_each_run(s, channels, p0, p1,
               [&](std::int64_t row, std::int64_t offset, std::int64_t begin, std::int64_t end,
                   Span span, std::int64_t image) {
                 T* to = columns + row * pixels + offset;
                 const T* from = x + image;
                 std::fill(to + begin, to + span.first, T(0));
                 if (stride == 1) {
                   std::copy(from + span.first, from + span.last, to + span.first);
                 } else {
                   for (std::int64_t j = span.first; j < span.last; ++j) to[j] = from[j * stride];
                 }
                 std::fill(to + span.last, to + end, T(0));
               });
}

// dx += the columns, each at the element that it came from.
template <class T>
void roll(const ConvSizes& s, const T* columns, std::int64_t channels, std::int64_t p0,
          std::int64_t p1, T* dx) {
  const std::int64_t pixels = p1 - p0, stride = s.stride_w;
  for_each_run(s, channels, p0, p1,
               [&](std::int64_t row, std::int64_t offset, std::int64_t, std::int64_t, Span span,
                   std::int64_t image) {
                 const T* from = columns + row * pixels + offset;
                 T* to = dx + image;
                 for (std::int64_t j = span.first; j < span.last; ++j) to[j * stride] += from[j];
               });
}

std::int64_t grain_of(std::int64_t products_of_unit) {
  return divide_up(kChunkProducts, std::max<std::int64_t>(1, products_of_unit));
}

}  // namespace

template <class T>
void conv_unroll_forward(const ConvSizes& s, const T* x, const T* weight, const T* bias, T* y) {
  const std::int64_t rows = s.group_channels() * s.taps(), outs = s.group_outputs();
  const std::int64_t step = block_pixels(s, rows), blocks = divide_up(s.out_pixels(), step);
  parallel_for(
      s.n * s.groups * blocks, grain_of(outs * rows * step),
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t unit = begin; unit < end; ++unit) {
          const std::int64_t sample = unit / blocks / s.groups, group = unit / blocks % s.groups;
          const std::int64_t p0 = unit % blocks * step, p1 = std::min(s.out_pixels(), p0 + step);
          const T* image = x + (sample * s.channels + group * s.group_channels()) * s.in_pixels();
          T* out = y + (sample * s.outputs + group * outs) * s.out_pixels() + p0;
          Product p{.m = outs, .n = p1 - p0, .k = rows, .ldc = s.out_pixels()};
          const T* b = image + p0;
          if (is_pointwise(s)) {
            p.ldb = s.in_pixels();
          } else {
            T* columns = scratch<T>(Scratch::columns, rows * (p1 - p0));
            unroll(s, image, s.group_channels(), p0, p1, columns);
            b = columns;
          }
          T beta = 0;
          if (bias) {
            for (std::int64_t o = 0; o < outs; ++o) {
              std::fill_n(out + o * s.out_pixels(), p1 - p0, bias[group * outs + o]);
            }
            beta = 1;
          }
          gemm_serial(p, T(1), weight + group * outs * rows, b, beta, out);
        }
      });
}

template <class T>
void conv_unroll_backward_input(const ConvSizes& s, const T* dy, const T* weight, T* dx) {
  const std::int64_t outs = s.group_outputs(), taps = s.taps();
  const std::int64_t rows = s.group_channels() * taps;
  // A unit is a part of a group's channels: all pixels of a channel are summed by one thread.
  const std::int64_t part = std::min(s.group_channels(), std::max<std::int64_t>(1, 144 / taps));
  const std::int64_t parts = divide_up(s.group_channels(), part);
  const std::int64_t step = block_pixels(s, part * taps);
  parallel_for(
      s.n * s.groups * parts, grain_of(outs * part * taps * s.out_pixels()),
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t unit = begin; unit < end; ++unit) {
          const std::int64_t sample = unit / parts / s.groups, group = unit / parts % s.groups;
          const std::int64_t c0 = unit % parts * part;
          const std::int64_t channels = std::min(part, s.group_channels() - c0);
          T* image = dx + (sample * s.channels + group * s.group_channels() + c0) * s.in_pixels();
          const T* grad = dy + (sample * s.outputs + group * outs) * s.out_pixels();
          const T* w = weight + group * outs * rows + c0 * taps;
          Product p{.m = channels * taps,
                    .k = outs,
                    .transpose_a = true,
                    .lda = rows,
                    .ldb = s.out_pixels()};
          if (is_pointwise(s)) {
            p.n = s.out_pixels();
            gemm_serial(p, T(1), w, grad, T(0), image);
            continue;
          }
          std::fill_n(image, channels * s.in_pixels(), T(0));
          for (std::int64_t p0 = 0; p0 < s.out_pixels(); p0 += step) {
            const std::int64_t p1 = std::min(s.out_pixels(), p0 + step);
            T* columns = scratch<T>(Scratch::columns, channels * taps * (p1 - p0));
            p.n = p1 - p0;
            gemm_serial(p, T(1), w, grad + p0, T(0), columns);
            roll(s, columns, channels, p0, p1, image);
          }
        }
      });
}

template <class T>
void conv_unroll_backward_weight(const ConvSizes& s, const T* x, const T* dy, bool accumulate,
                                 T* dweight) {
  const std::int64_t rows = s.group_channels() * s.taps(), outs = s.group_outputs();
  const std::int64_t size = s.outputs * rows;
  if (size == 0) return;
  if (s.n * s.out_pixels() == 0) {
    if (!accumulate) std::fill_n(dweight, size, T(0));
    return;
  }
  const std::int64_t step = block_pixels(s, rows), blocks = divide_up(s.out_pixels(), step);
  const std::int64_t units = s.n * blocks;
  const std::int64_t most = std::clamp<std::int64_t>(kPartialElements / size, 1, kPartials);
  const bool small = s.n * s.out_pixels() * size <= kChunkProducts;
  const std::int64_t per_chunk = small ? units : divide_up(units, most);
  const std::int64_t chunks = divide_up(units, per_chunk);
  // Few chunks: each of them is shared by several threads, a part of the outputs each.
  const std::int64_t slice =
      small ? outs : divide_up(outs, std::max<std::int64_t>(1, kPartials / chunks));
  const std::int64_t slices = divide_up(outs, slice);
  T* partial = scratch<T>(Scratch::weights, (chunks - 1) * size);
  parallel_for(chunks * s.groups * slices, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t chunk = i / slices / s.groups, group = i / slices % s.groups;
      const std::int64_t o0 = i % slices * slice;
      Product p{.m = std::min(slice, outs - o0), .n = rows, .transpose_b = true};
      p.lda = s.out_pixels();
      T* to = (chunk == 0 ? dweight : partial + (chunk - 1) * size) + (group * outs + o0) * rows;
      T beta = chunk == 0 && accumulate ? T(1) : T(0);
      for (std::int64_t unit = chunk * per_chunk; unit < std::min(units, (chunk + 1) * per_chunk);
           ++unit) {
        const std::int64_t sample = unit / blocks;
        const std::int64_t p0 = unit % blocks * step, p1 = std::min(s.out_pixels(), p0 + step);
        const T* image = x + (sample * s.channels + group * s.group_channels()) * s.in_pixels();
        const T* grad = dy + (sample * s.outputs + group * outs + o0) * s.out_pixels() + p0;
        const T* b = image + p0;
        p.k = p1 - p0;
        p.ldb = s.in_pixels();
        if (!is_pointwise(s)) {
          T* columns = scratch<T>(Scratch::columns, rows * p.k);
          unroll(s, image, s.group_channels(), p0, p1, columns);
          b = columns;
          p.ldb = p.k;
        }
        gemm_serial(p, T(1), grad, b, beta, to);
        beta = 1;
      }
    }
  });
  parallel_for(size, 16384, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t chunk = 1; chunk < chunks; ++chunk) {
      const T* from = partial + (chunk - 1) * size;
      for (std::int64_t i = begin; i < end; ++i) dweight[i] += from[i];
    }
  });
}

#define NORMA_INSTANTIATE(T)                                                             \
  template void conv_unroll_forward(const ConvSizes&, const T*, const T*, const T*, T*); \
  template void conv_unroll_backward_input(const ConvSizes&, const T*, const T*, T*);    \
  template void conv_unroll_backward_weight(const ConvSizes&, const T*, const T*, bool, T*);
NORMA_INSTANTIATE(float)
NORMA_INSTANTIATE(double)
#undef NORMA_INSTANTIATE

}  // namespace norma::kernels
