// The transforms and products of one block of tiles: see Note [Winograd] in conv_winograd.cpp.
//
// Included once a target.
#ifndef NORMA_CONV_WINOGRAD_SIZES
#define NORMA_CONV_WINOGRAD_SIZES

#include <algorithm>
#include <cstdint>

#include "core/kernels/divide.h"

namespace norma::kernels {
namespace {

constexpr int kPoints = 16;  // elements of a transformed tile
// Channels are padded to whole vectors of 64 bytes of f32.
constexpr std::int64_t kChannelStep = 16;
// Transformed weights lie in groups of so many outputs, behind each other as a product reads them.
constexpr std::int64_t kGroup = 32;

// One image of a pass, cut into tiles.
struct Image {
  std::int64_t channels, h, w;  // of the image in memory
  std::int64_t row0, col0;      // of the first tile's first element; may lie outside
  std::int64_t padded;          // channels, rounded up to whole vectors
};

// A pass over tiles: `rows` rows of tiles, `down` to a sample, `across` tiles each.
struct Tiles {
  std::int64_t rows, down, across;
};

}  // namespace
}  // namespace norma::kernels
#endif  // NORMA_CONV_WINOGRAD_SIZES

#if defined(NORMA_CONV_WINOGRAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMA_CONV_WINOGRAD_INL_H_
#undef NORMA_CONV_WINOGRAD_INL_H_
#else
#define NORMA_CONV_WINOGRAD_INL_H_
#endif

#include "core/kernels/gemm_tile-inl.h"
#include "core/kernels/scratch.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace norma::kernels::HWY_NAMESPACE {
namespace {

// lines (height, width, padded) = rows first..first+height-1 of an image, columns
// col0..col0+width-1, channels last; zeros outside of the image and in the padding.
template <class T>
void turn_rows(const Image& m, const T* image, std::int64_t first, std::int64_t height,
               std::int64_t width, T* lines) {
  const std::int64_t from = std::max<std::int64_t>(0, m.col0);
  const std::int64_t to = std::max(from, std::min(m.w, m.col0 + width));
  const std::int64_t whole = m.channels / 4 * 4;
  for (std::int64_t r = 0; r < height; ++r) {
    T* line = lines + r * width * m.padded;
    const std::int64_t y = first + r;
    if (y < 0 || y >= m.h || from == to) {
      std::fill_n(line, width * m.padded, T(0));
      continue;
    }
    std::fill_n(line, (from - m.col0) * m.padded, T(0));
    T* inner = line + (from - m.col0) * m.padded;
    const T* row = image + y * m.w + from;
    const std::int64_t plane = m.h * m.w;
    for (std::int64_t c = 0; c < whole; c += 4) {
      transpose_four(row + c * plane, plane, to - from, inner + c, m.padded);
    }
    for (std::int64_t c = whole; c < m.padded; ++c) {
      for (std::int64_t x = 0; x < to - from; ++x) {
        inner[x * m.padded + c] = c < m.channels ? row[c * plane + x] : T(0);
      }
    }
    std::fill_n(inner + (to - from) * m.padded, (width - (to - m.col0)) * m.padded, T(0));
  }
}

// image rows first.. = lines (height, width, padded), as far as they lie inside; the inverse of
// turn_rows() for an image whose col0 is 0.
template <class T>
void turn_back(const Image& m, const T* lines, std::int64_t first, std::int64_t height,
               std::int64_t width, T* image) {
  const std::int64_t plane = m.h * m.w, whole = m.w / 4 * 4;
  for (std::int64_t r = 0; r < std::min(height, m.h - first); ++r) {
    const T* line = lines + r * width * m.padded;
    T* row = image + (first + r) * m.w;
    for (std::int64_t x = 0; x < whole; x += 4) {
      transpose_four(line + x * m.padded, m.padded, m.channels, row + x, plane);
    }
    for (std::int64_t x = whole; x < m.w; ++x) {
      for (std::int64_t c = 0; c < m.channels; ++c) row[c * plane + x] = line[x * m.padded + c];
    }
  }
}

// v (kPoints, tiles, channels) = B^T d B of one row of tiles; lines has 4 rows of `width` pixels.
// `stride` leads from one point of v to the next.
template <class T>
void transform_input(const T* lines, std::int64_t width, std::int64_t channels, std::int64_t tiles,
                     std::int64_t stride, T* v) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d)), row = width * channels;
  for (std::int64_t t = 0; t < tiles; ++t) {
    for (std::int64_t c = 0; c < channels; c += lanes) {
      const T* from = lines + 2 * t * channels + c;
      V m[4][4];
      for (int q = 0; q < 4; ++q) {
        const T* p = from + q * channels;
        const V d0 = hn::LoadU(d, p), d1 = hn::LoadU(d, p + row);
        const V d2 = hn::LoadU(d, p + 2 * row), d3 = hn::LoadU(d, p + 3 * row);
        m[0][q] = hn::Sub(d0, d2);
        m[1][q] = hn::Add(d1, d2);
        m[2][q] = hn::Sub(d2, d1);
        m[3][q] = hn::Sub(d1, d3);
      }
      T* to = v + t * channels + c;
      for (int r = 0; r < 4; ++r) {
        hn::StoreU(hn::Sub(m[r][0], m[r][2]), d, to + (4 * r + 0) * stride);
        hn::StoreU(hn::Add(m[r][1], m[r][2]), d, to + (4 * r + 1) * stride);
        hn::StoreU(hn::Sub(m[r][2], m[r][1]), d, to + (4 * r + 2) * stride);
        hn::StoreU(hn::Sub(m[r][1], m[r][3]), d, to + (4 * r + 3) * stride);
      }
    }
  }
}

// lines (2, 2 tiles, channels) = A^T m A + bias of one row of tiles. `bias` has `channels`
// elements.
template <class T>
void transform_output(const T* m, std::int64_t stride, std::int64_t channels, std::int64_t tiles,
                      const T* bias, T* lines) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d)), row = 2 * tiles * channels;
  for (std::int64_t t = 0; t < tiles; ++t) {
    for (std::int64_t c = 0; c < channels; c += lanes) {
      const T* from = m + t * channels + c;
      V s[2][4];
      for (int q = 0; q < 4; ++q) {
        const V m0 = hn::LoadU(d, from + q * stride), m1 = hn::LoadU(d, from + (4 + q) * stride);
        const V m2 = hn::LoadU(d, from + (8 + q) * stride);
        const V m3 = hn::LoadU(d, from + (12 + q) * stride);
        s[0][q] = hn::Add(m0, hn::Add(m1, m2));
        s[1][q] = hn::Sub(hn::Sub(m1, m2), m3);
      }
      const V b = hn::LoadU(d, bias + c);
      T* to = lines + 2 * t * channels + c;
      for (int r = 0; r < 2; ++r) {
        hn::StoreU(hn::Add(b, hn::Add(s[r][0], hn::Add(s[r][1], s[r][2]))), d, to + r * row);
        hn::StoreU(hn::Add(b, hn::Sub(hn::Sub(s[r][1], s[r][2]), s[r][3])), d,
                   to + r * row + channels);
      }
    }
  }
}

// z (kPoints, tiles, channels) = A dy A^T of one row of tiles; lines (2, 2 tiles, channels).
template <class T>
void transform_gradient(const T* lines, std::int64_t channels, std::int64_t tiles,
                        std::int64_t stride, T* z) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d)), row = 2 * tiles * channels;
  for (std::int64_t t = 0; t < tiles; ++t) {
    for (std::int64_t c = 0; c < channels; c += lanes) {
      const T* from = lines + 2 * t * channels + c;
      V m[4][2];
      for (int q = 0; q < 2; ++q) {
        const V d0 = hn::LoadU(d, from + q * channels);
        const V d1 = hn::LoadU(d, from + row + q * channels);
        m[0][q] = d0;
        m[1][q] = hn::Add(d0, d1);
        m[2][q] = hn::Sub(d0, d1);
        m[3][q] = hn::Neg(d1);
      }
      T* to = z + t * channels + c;
      for (int r = 0; r < 4; ++r) {
        hn::StoreU(m[r][0], d, to + (4 * r + 0) * stride);
        hn::StoreU(hn::Add(m[r][0], m[r][1]), d, to + (4 * r + 1) * stride);
        hn::StoreU(hn::Sub(m[r][0], m[r][1]), d, to + (4 * r + 2) * stride);
        hn::StoreU(hn::Neg(m[r][1]), d, to + (4 * r + 3) * stride);
      }
    }
  }
}

// u (kPoints, groups, inputs, kGroup) = G w G^T for inputs begin..end-1, with zeros behind the
// outputs. The kernel from input c to output o is at w + o * step_out + c * step_in, turned around
// if `flip`.
template <class T>
void transform_weight(const T* w, std::int64_t step_in, std::int64_t step_out, bool flip,
                      std::int64_t begin, std::int64_t end, std::int64_t inputs,
                      std::int64_t outputs, std::int64_t padded, T* u) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t stride = inputs * round_up(padded, kGroup);
  const V half = hn::Set(d, T(0.5));
  // Kernels of neighbouring inputs that lie together are read together.
  const std::int64_t together = step_in == 9 ? 4 : 1;
  HWY_ALIGN T taps[36 * 16];  // (together * 9, kChannelStep)
  for (std::int64_t c = begin; c < end; c += together) {
    const std::int64_t count = std::min(together, end - c);
    for (std::int64_t o = 0; o < padded; o += kChannelStep) {
      const std::int64_t present = std::clamp<std::int64_t>(outputs - o, 0, kChannelStep);
      if (present < kChannelStep) std::fill(taps, taps + 36 * kChannelStep, T(0));
      const T* from = w + o * step_out + c * step_in;
      std::int64_t k = 0;
      for (; k + 4 <= present; k += 4) {
        transpose_four(from + k * step_out, step_out, 9 * count, taps + k, kChannelStep);
      }
      for (; k < present; ++k) {
        for (std::int64_t i = 0; i < 9 * count; ++i) {
          taps[i * kChannelStep + k] = from[k * step_out + i];
        }
      }
      for (std::int64_t i = 0; i < count; ++i) {
        for (std::int64_t lane = 0; lane < kChannelStep; lane += lanes) {
          V m[4][3];
          for (int b = 0; b < 3; ++b) {
            const auto tap = [&](int a) HWY_ATTR {
              const int at = flip ? 8 - 3 * a - b : 3 * a + b;
              return hn::Load(d, taps + (9 * i + at) * kChannelStep + lane);
            };
            const V k0 = tap(0), k1 = tap(1), k2 = tap(2), sum = hn::Add(k0, k2);
            m[0][b] = k0;
            m[1][b] = hn::Mul(half, hn::Add(sum, k1));
            m[2][b] = hn::Mul(half, hn::Sub(sum, k1));
            m[3][b] = k2;
          }
          T* to = u + (o / kGroup * inputs + c + i) * kGroup + o % kGroup + lane;
          for (int r = 0; r < 4; ++r) {
            const V sum = hn::Add(m[r][0], m[r][2]);
            hn::StoreU(m[r][0], d, to + (4 * r + 0) * stride);
            hn::StoreU(hn::Mul(half, hn::Add(sum, m[r][1])), d, to + (4 * r + 1) * stride);
            hn::StoreU(hn::Mul(half, hn::Sub(sum, m[r][1])), d, to + (4 * r + 2) * stride);
            hn::StoreU(m[r][2], d, to + (4 * r + 3) * stride);
          }
        }
      }
    }
  }
}

// dweight (channels, 3, 3) of one output = (or +=) G^T (sum of the chunks) G. `sums` is (chunks,
// kPoints, outputs, padded channels), from that output on; `lines` holds 25 * padded elements.
template <class T>
void finish_gradient(const T* sums, std::int64_t chunks, std::int64_t chunk_step,
                     std::int64_t point_step, std::int64_t channels, std::int64_t padded,
                     bool accumulate, T* lines, T* dweight) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (int k = 0; k < kPoints; ++k) {
    const T* from = sums + k * point_step;
    T* to = lines + k * padded;
    std::copy_n(from, padded, to);
    for (std::int64_t chunk = 1; chunk < chunks; ++chunk) {
      const T* part = from + chunk * chunk_step;
      for (std::int64_t c = 0; c < padded; c += lanes) {
        hn::StoreU(hn::Add(hn::LoadU(d, to + c), hn::LoadU(d, part + c)), d, to + c);
      }
    }
  }
  const V half = hn::Set(d, T(0.5));
  T* taps = lines + kPoints * padded;
  for (std::int64_t c = 0; c < padded; c += lanes) {
    V g[3][4];
    for (int q = 0; q < 4; ++q) {
      const auto at = [&](int r)
                          HWY_ATTR { return hn::LoadU(d, lines + (4 * r + q) * padded + c); };
      const V m1 = at(1), m2 = at(2), plus = hn::Mul(half, hn::Add(m1, m2));
      g[0][q] = hn::Add(at(0), plus);
      g[1][q] = hn::Mul(half, hn::Sub(m1, m2));
      g[2][q] = hn::Add(plus, at(3));
    }
    for (int r = 0; r < 3; ++r) {
      const V plus = hn::Mul(half, hn::Add(g[r][1], g[r][2]));
      T* to = taps + 3 * r * padded + c;
      hn::StoreU(hn::Add(g[r][0], plus), d, to);
      hn::StoreU(hn::Mul(half, hn::Sub(g[r][1], g[r][2])), d, to + padded);
      hn::StoreU(hn::Add(plus, g[r][3]), d, to + 2 * padded);
    }
  }
  for (std::int64_t c = 0; c < channels; ++c) {
    for (int k = 0; k < 9; ++k) {
      const T value = taps[k * padded + c];
      dweight[9 * c + k] = accumulate ? dweight[9 * c + k] + value : value;
    }
  }
}

// Calls f(sample, first row of tiles in it, number of them, tiles before them) for the parts of
// rows begin..end-1 that lie in one sample.
template <class F>
void for_each_sample(const Tiles& tiles, std::int64_t begin, std::int64_t end, F f) {
  for (std::int64_t row = begin; row < end;) {
    const std::int64_t count = std::min(end, (row / tiles.down + 1) * tiles.down) - row;
    f(row / tiles.down, row % tiles.down, count, (row - begin) * tiles.across);
    row += count;
  }
}

// v (kPoints, tiles of rows begin..end-1, channels) = the transformed image.
template <class T>
void transform_image(const Image& m, const Tiles& tiles, const T* x, std::int64_t begin,
                     std::int64_t end, T* v) {
  const std::int64_t width = 2 * tiles.across + 2;
  const std::int64_t stride = (end - begin) * tiles.across * m.padded;
  for_each_sample(
      tiles, begin, end,
      [&](std::int64_t sample, std::int64_t first, std::int64_t count, std::int64_t before) {
        T* lines = scratch<T>(Scratch::columns, (2 * count + 2) * width * m.padded);
        turn_rows(m, x + sample * m.channels * m.h * m.w, 2 * first + m.row0, 2 * count + 2, width,
                  lines);
        for (std::int64_t i = 0; i < count; ++i) {
          transform_input(lines + 2 * i * width * m.padded, width, m.padded, tiles.across, stride,
                          v + (before + i * tiles.across) * m.padded);
        }
      });
}

// Rows begin..end-1 of tiles of out = the convolution of `in` with the transformed weights u.
template <class T>
void Forward(const Image& in, const Image& out, const Tiles& tiles, const T* x, const T* u,
             const T* bias, std::int64_t begin, std::int64_t end, T* y) {
  const std::int64_t count = (end - begin) * tiles.across;
  T* v = scratch<T>(Scratch::transformed, kPoints * count * in.padded);
  T* m = scratch<T>(Scratch::product, kPoints * count * out.padded);
  T* panel = scratch<T>(Scratch::panel, kPanelDepth * kPanelCols<T>);
  transform_image(in, tiles, x, begin, end, v);
  Product p{.m = count, .k = in.channels, .lda = in.padded, .ldb = kGroup, .ldc = out.padded};
  for (int point = 0; point < kPoints; ++point) {
    for (std::int64_t o = 0; o < out.padded; o += kGroup, u += in.channels * kGroup) {
      p.n = std::min(kGroup, out.padded - o);
      tile_product(p, T(1), v + point * count * in.padded, u, T(0), nullptr,
                   m + point * count * out.padded + o, true, panel);
    }
  }
  const std::int64_t width = 2 * tiles.across;
  for_each_sample(
      tiles, begin, end,
      [&](std::int64_t sample, std::int64_t first, std::int64_t rows, std::int64_t before) {
        T* lines = scratch<T>(Scratch::columns, 2 * width * out.padded);
        for (std::int64_t i = 0; i < rows; ++i) {
          transform_output(m + (before + i * tiles.across) * out.padded, count * out.padded,
                           out.padded, tiles.across, bias, lines);
          turn_back(out, lines, 2 * (first + i), 2, width,
                    y + sample * out.channels * out.h * out.w);
        }
      });
}

// sums (kPoints, outputs, channels) = (or +=) the products over rows begin..end-1 of tiles.
template <class T>
void Gradient(const Image& in, const Image& out, const Tiles& tiles, const T* x, const T* dy,
              std::int64_t begin, std::int64_t end, bool add, T* sums) {
  const std::int64_t count = (end - begin) * tiles.across, width = 2 * tiles.across;
  T* v = scratch<T>(Scratch::transformed, kPoints * count * in.padded);
  T* z = scratch<T>(Scratch::product, kPoints * count * out.padded);
  T* panel = scratch<T>(Scratch::panel, kPanelDepth * kPanelCols<T>);
  transform_image(in, tiles, x, begin, end, v);
  for_each_sample(
      tiles, begin, end,
      [&](std::int64_t sample, std::int64_t first, std::int64_t rows, std::int64_t before) {
        T* lines = scratch<T>(Scratch::columns, 2 * rows * width * out.padded);
        turn_rows(out, dy + sample * out.channels * out.h * out.w, 2 * first, 2 * rows, width,
                  lines);
        for (std::int64_t i = 0; i < rows; ++i) {
          transform_gradient(lines + 2 * i * width * out.padded, out.padded, tiles.across,
                             count * out.padded, z + (before + i * tiles.across) * out.padded);
        }
      });
  const Product p{.m = out.channels,
                  .n = in.padded,
                  .k = count,
                  .transpose_a = true,
                  .lda = out.padded,
                  .ldb = in.padded,
                  .ldc = in.padded};
  for (int point = 0; point < kPoints; ++point) {
    tile_product(p, T(1), z + point * count * out.padded, v + point * count * in.padded,
                 T(add ? 1 : 0), nullptr, sums + point * out.channels * in.padded, true, panel);
  }
}

}  // namespace
}  // namespace norma::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // NORMA_CONV_WINOGRAD_INL_H_
