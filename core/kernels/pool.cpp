#include "core/kernels/pool.h"

#include <algorithm>
#include <cmath>

#include "core/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/pool.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace norma::kernels::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// One row of 2 x 2 windows side by side: y[j] = the largest of a[2 j], a[2 j + 1], b[2 j],
// b[2 j + 1], index[j] (if not null) = at + its position, where b is `down` behind a. The last step
// goes over some windows once more. Needs at least as many windows as the tag has lanes.
template <class D>
HWY_INLINE void max_row(D d, const float* a, const float* b, std::int64_t windows, std::int32_t at,
                        std::int32_t down, float* y, std::int32_t* index) {
  const hn::Rebind<std::int32_t, D> di;
  using V = hn::Vec<D>;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  // r takes the place of l: it is larger, or a NaN beside a number.
  const auto right = [](V l, V r) HWY_ATTR {
    return hn::Or(hn::Lt(l, r), hn::AndNot(hn::IsNaN(l), hn::IsNaN(r)));
  };
  for (std::int64_t step = 0; step < windows; step += lanes) {
    const std::int64_t j = std::min(step, windows - lanes);
    V v00, v01, v10, v11;
    hn::LoadInterleaved2(d, a + 2 * j, v00, v01);
    hn::LoadInterleaved2(d, b + 2 * j, v10, v11);
    const auto right0 = right(v00, v01), right1 = right(v10, v11);
    const V top = hn::IfThenElse(right0, v01, v00), bottom = hn::IfThenElse(right1, v11, v10);
    const auto lower = right(top, bottom);
    hn::StoreU(hn::IfThenElse(lower, bottom, top), d, y + j);
    if (!index) continue;
    const auto one = hn::Set(di, 1);
    const auto first = hn::IfThenElseZero(hn::RebindMask(di, right0), one);
    const auto second =
        hn::Add(hn::Set(di, down), hn::IfThenElseZero(hn::RebindMask(di, right1), one));
    const auto column = hn::Iota(di, static_cast<std::int32_t>(j));
    const auto within = hn::IfThenElse(hn::RebindMask(di, lower), second, first);
    hn::StoreU(hn::Add(hn::Add(hn::Set(di, at), hn::Add(column, column)), within), di, index + j);
  }
}

// False where rows are too short for vectors.
bool MaxRow([[maybe_unused]] const float* a, [[maybe_unused]] const float* b,
            [[maybe_unused]] std::int64_t windows, [[maybe_unused]] std::int32_t at,
            [[maybe_unused]] std::int32_t down, [[maybe_unused]] float* y,
            [[maybe_unused]] std::int32_t* index) {
#if HWY_TARGET != HWY_SCALAR
  if (windows >= 16) {
    max_row(hn::CappedTag<float, 16>(), a, b, windows, at, down, y, index);
    return true;
  }
  if (windows >= 8) {
    max_row(hn::CappedTag<float, 8>(), a, b, windows, at, down, y, index);
    return true;
  }
  if (windows >= 4) {
    max_row(hn::CappedTag<float, 4>(), a, b, windows, at, down, y, index);
    return true;
  }
#endif
  return false;
}

}  // namespace
}  // namespace norma::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace norma::kernels {

HWY_EXPORT(MaxRow);

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

// The most frequent case, 2 x 2 windows side by side.
void max_plane_2x2(const PoolSizes& s, const float* x, float* y, std::int32_t* index) {
  const PoolSizes row{.h = 2,
                      .w = s.w,
                      .out_h = 1,
                      .out_w = s.out_w,
                      .kernel_h = 2,
                      .kernel_w = 2,
                      .stride_h = 2,
                      .stride_w = 2};
  for (std::int64_t i = 0; i < s.out_h; ++i) {
    const float* a = x + 2 * i * s.w;
    const auto at = static_cast<std::int32_t>(2 * i * s.w);
    if (!HWY_DYNAMIC_DISPATCH(MaxRow)(a, a + s.w, s.out_w, at, static_cast<std::int32_t>(s.w), y,
                                      index)) {
      max_plane(row, a, y, index);
      for (std::int64_t j = 0; index && j < s.out_w; ++j) index[j] += at;
    }
    y += s.out_w;
    if (index) index += s.out_w;
  }
}

// Eight sums side by side, for the compiler to hold in vectors.
template <class T>
T sum_of(const T* x, std::int64_t n) {
  T part[8] = {};
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (int k = 0; k < 8; ++k) part[k] += x[i + k];
  }
  for (int k = 0; i < n; ++i, ++k) part[k] += x[i];
  return ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
}

}  // namespace

template <class T>
void max_pool_forward(const PoolSizes& s, const T* x, T* y, std::int32_t* index) {
  [[maybe_unused]] const bool pairs = s.kernel_h == 2 && s.kernel_w == 2 && s.stride_h == 2 &&
                                      s.stride_w == 2 && s.padding_h == 0 && s.padding_w == 0;
  const std::int64_t in = s.h * s.w, out = s.out_h * s.out_w;
  parallel_for(s.planes, grain_of(work_of(s)), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) {
      std::int32_t* to = index ? index + p * out : nullptr;
      if constexpr (sizeof(T) == 4) {
        if (pairs) {
          max_plane_2x2(s, x + p * in, y + p * out, to);
          continue;
        }
      }
      max_plane(s, x + p * in, y + p * out, to);
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
  constexpr std::int64_t kRun = 512;  // terms that are summed in T, in eight parts
  parallel_for(planes, grain_of(pixels), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) {
      double sum = 0;
      for (std::int64_t i = 0; i < pixels; i += kRun) {
        sum += static_cast<double>(sum_of(x + p * pixels + i, std::min(kRun, pixels - i)));
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
#endif  // HWY_ONCE
