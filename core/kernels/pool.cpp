#include "core/kernels/pool.h"

#include <algorithm>
#include <cmath>

#include "core/parallel.h"

namespace norma::kernels {
namespace {

// Planes of a chunk of a parallel loop: about 32k elements.
std::int64_t grain_of(std::int64_t elements) {
  return 1 + 32768 / std::max<std::int64_t>(1, elements);
}

std::int64_t work_of(const PoolSizes& s) {
  return s.h * s.w + s.out_h * s.out_w * s.kernel_h * s.kernel_w;
}

// The part of a window along one axis that lies in the image.
struct Range {
  std::int64_t begin, end;
};
Range window(std::int64_t i, std::int64_t stride, std::int64_t padding, std::int64_t kernel,
             std::int64_t size) {
  const std::int64_t first = i * stride - padding;
  return {std::max<std::int64_t>(0, first), std::min(size, first + kernel)};
}

// True iff `a` takes the place of `b`: it is larger, or the first NaN.
template <class T>
bool beats(T a, T b) {
  return a > b || (std::isnan(a) && !std::isnan(b));
}

template <class T>
void max_plane(const PoolSizes& s, const T* x, T* y, std::int32_t* index) {
  for (std::int64_t i = 0; i < s.out_h; ++i) {
    const Range rows = window(i, s.stride_h, s.padding_h, s.kernel_h, s.h);
    for (std::int64_t j = 0; j < s.out_w; ++j) {
      const Range cols = window(j, s.stride_w, s.padding_w, s.kernel_w, s.w);
      std::int64_t best = rows.begin * s.w + cols.begin;
      for (std::int64_t r = rows.begin; r < rows.end; ++r) {
        for (std::int64_t c = cols.begin; c < cols.end; ++c) {
          if (beats(x[r * s.w + c], x[best])) best = r * s.w + c;
        }
      }
      *y++ = x[best];
      if (index) *index++ = static_cast<std::int32_t>(best);
    }
  }
}

// The most frequent case, 2 x 2 windows side by side, without a branch an element.
template <class T>
void max_plane_2x2(const PoolSizes& s, const T* x, T* y, std::int32_t* index) {
  for (std::int64_t i = 0; i < s.out_h; ++i) {
    const T* a = x + 2 * i * s.w;
    const T* b = a + s.w;
    const auto at = static_cast<std::int32_t>(2 * i * s.w), down = static_cast<std::int32_t>(s.w);
    for (std::int64_t j = 0; j < s.out_w; ++j) {
      const T v00 = a[2 * j], v01 = a[2 * j + 1], v10 = b[2 * j], v11 = b[2 * j + 1];
      // A comparison with NaN is false, so each of these keeps a NaN on its left, and !(l >= r)
      // takes one on its right.
      const bool right0 = !(v00 >= v01) && v00 == v00, right1 = !(v10 >= v11) && v10 == v10;
      const T top = right0 ? v01 : v00, bottom = right1 ? v11 : v10;
      const bool lower = !(top >= bottom) && top == top;
      const auto col = static_cast<std::int32_t>(2 * j);
      y[j] = lower ? bottom : top;
      if (index) {
        index[j] = at + col + (lower ? down + std::int32_t{right1} : std::int32_t{right0});
      }
    }
    y += s.out_w;
    if (index) index += s.out_w;
  }
}

}  // namespace

template <class T>
void max_pool_forward(const PoolSizes& s, const T* x, T* y, std::int32_t* index) {
  const bool pairs = s.kernel_h == 2 && s.kernel_w == 2 && s.stride_h == 2 && s.stride_w == 2 &&
                     s.padding_h == 0 && s.padding_w == 0;
  const std::int64_t in = s.h * s.w, out = s.out_h * s.out_w;
  parallel_for(s.planes, grain_of(work_of(s)), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) {
      std::int32_t* to = index ? index + p * out : nullptr;
      if (pairs) {
        max_plane_2x2(s, x + p * in, y + p * out, to);
      } else {
        max_plane(s, x + p * in, y + p * out, to);
      }
    }
  });
}

template <class T>
void max_pool_backward(const PoolSizes& s, const T* dy, const std::int32_t* index, bool accumulate,
                       T* dx) {
  const std::int64_t in = s.h * s.w, out = s.out_h * s.out_w;
  parallel_for(s.planes, grain_of(in + out), [&](std::int64_t begin, std::int64_t end) {
    if (!accumulate) std::fill(dx + begin * in, dx + end * in, T(0));
    for (std::int64_t p = begin; p < end; ++p) {
      for (std::int64_t i = p * out; i < (p + 1) * out; ++i) dx[p * in + index[i]] += dy[i];
    }
  });
}

template <class T>
void avg_pool_forward(const PoolSizes& s, const T* x, T* y) {
  const std::int64_t in = s.h * s.w, out = s.out_h * s.out_w;
  const T scale = T(1) / static_cast<T>(s.kernel_h * s.kernel_w);
  parallel_for(s.planes, grain_of(work_of(s)), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) {
      T* to = y + p * out;
      for (std::int64_t i = 0; i < s.out_h; ++i) {
        const Range rows = window(i, s.stride_h, s.padding_h, s.kernel_h, s.h);
        for (std::int64_t j = 0; j < s.out_w; ++j) {
          const Range cols = window(j, s.stride_w, s.padding_w, s.kernel_w, s.w);
          T sum = 0;
          for (std::int64_t r = rows.begin; r < rows.end; ++r) {
            for (std::int64_t c = cols.begin; c < cols.end; ++c) sum += x[p * in + r * s.w + c];
          }
          *to++ = sum * scale;
        }
      }
    }
  });
}

template <class T>
void avg_pool_backward(const PoolSizes& s, const T* dy, bool accumulate, T* dx) {
  const std::int64_t in = s.h * s.w, out = s.out_h * s.out_w;
  const T scale = T(1) / static_cast<T>(s.kernel_h * s.kernel_w);
  parallel_for(s.planes, grain_of(work_of(s)), [&](std::int64_t begin, std::int64_t end) {
    if (!accumulate) std::fill(dx + begin * in, dx + end * in, T(0));
    for (std::int64_t p = begin; p < end; ++p) {
      const T* from = dy + p * out;
      for (std::int64_t i = 0; i < s.out_h; ++i) {
        const Range rows = window(i, s.stride_h, s.padding_h, s.kernel_h, s.h);
        for (std::int64_t j = 0; j < s.out_w; ++j) {
          const Range cols = window(j, s.stride_w, s.padding_w, s.kernel_w, s.w);
          const T share = *from++ * scale;
          for (std::int64_t r = rows.begin; r < rows.end; ++r) {
            for (std::int64_t c = cols.begin; c < cols.end; ++c) dx[p * in + r * s.w + c] += share;
          }
        }
      }
    }
  });
}

template <class T>
void mean_planes_forward(std::int64_t planes, std::int64_t pixels, const T* x, T* y) {
  constexpr std::int64_t kRun = 64;  // terms that are summed in T
  parallel_for(planes, grain_of(pixels), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) {
      double sum = 0;
      for (std::int64_t i = 0; i < pixels; i += kRun) {
        T part = 0;
        for (std::int64_t k = i; k < std::min(pixels, i + kRun); ++k) part += x[p * pixels + k];
        sum += static_cast<double>(part);
      }
      y[p] = static_cast<T>(sum / static_cast<double>(pixels));
    }
  });
}

template <class T>
void mean_planes_backward(std::int64_t planes, std::int64_t pixels, const T* dy, bool accumulate,
                          T* dx) {
  parallel_for(planes, grain_of(pixels), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) {
      const T share = dy[p] / static_cast<T>(pixels);
      T* to = dx + p * pixels;
      for (std::int64_t i = 0; i < pixels; ++i) to[i] = accumulate ? to[i] + share : share;
    }
  });
}

#define NORMA_INSTANTIATE(T)                                                                  \
  template void max_pool_forward(const PoolSizes&, const T*, T*, std::int32_t*);              \
  template void max_pool_backward(const PoolSizes&, const T*, const std::int32_t*, bool, T*); \
  template void avg_pool_forward(const PoolSizes&, const T*, T*);                             \
  template void avg_pool_backward(const PoolSizes&, const T*, bool, T*);                      \
  template void mean_planes_forward(std::int64_t, std::int64_t, const T*, T*);                \
  template void mean_planes_backward(std::int64_t, std::int64_t, const T*, bool, T*);
NORMA_INSTANTIATE(float)
NORMA_INSTANTIATE(double)
#undef NORMA_INSTANTIATE

}  // namespace norma::kernels
