#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/reduce.cpp"
#include "hwy/foreach_target.h"  // must come before the vector headers
//
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/kernels/divide.h"
#include "core/kernels/reduce.h"
#include "core/kernels/tail-inl.h"
#include "core/kernels/wide-inl.h"

HWY_BEFORE_NAMESPACE();
namespace norma::kernels::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// The better of a and b, or NaN once there was one.
template <bool kMax, class D, class V>
HWY_INLINE V better(D, V a, V b) {
  const auto wins = kMax ? hn::Gt(b, a) : hn::Lt(b, a);
  return hn::IfThenElse(hn::Or(wins, hn::IsNaN(b)), b, a);
}
template <bool kMax, class T>
HWY_INLINE T better_scalar(T a, T b) {
  return (kMax ? b > a : b < a) || std::isnan(b) ? b : a;
}

// for (i < n) m = better(m, x[i]);
template <bool kMax, class T>
HWY_INLINE T extreme_row(const T* x, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  T m = x[0];
  std::int64_t i = 0;
  if (n >= 4 * lanes) {
    auto m0 = hn::LoadU(d, x), m1 = hn::LoadU(d, x + lanes);
    auto m2 = hn::LoadU(d, x + 2 * lanes), m3 = hn::LoadU(d, x + 3 * lanes);
    for (i = 4 * lanes; i + 4 * lanes <= n; i += 4 * lanes) {
      m0 = better<kMax>(d, m0, hn::LoadU(d, x + i));
      m1 = better<kMax>(d, m1, hn::LoadU(d, x + i + lanes));
      m2 = better<kMax>(d, m2, hn::LoadU(d, x + i + 2 * lanes));
      m3 = better<kMax>(d, m3, hn::LoadU(d, x + i + 3 * lanes));
    }
    for (; i + lanes <= n; i += lanes) m0 = better<kMax>(d, m0, hn::LoadU(d, x + i));
    const auto best = better<kMax>(d, better<kMax>(d, m0, m1), better<kMax>(d, m2, m3));
    if (!hn::AllTrue(d, hn::Eq(best, best))) return std::numeric_limits<T>::quiet_NaN();
    m = hn::GetLane(kMax ? hn::MaxOfLanes(d, best) : hn::MinOfLanes(d, best));
  }
  for (; i < n; ++i) m = better_scalar<kMax>(m, x[i]);
  return m;
}

// for (k < n) for (i < cols) y[i] = better(y[i], x[k * stride + i]);
template <bool kMax, class T>
HWY_INLINE void extreme_columns(const T* x, std::int64_t stride, std::int64_t n, std::int64_t cols,
                                T* y) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::copy_n(x, cols, y);
  for (std::int64_t k = 1; k < n; ++k) {
    x += stride;
    std::int64_t i = 0;
    for (; i + lanes <= cols; i += lanes) {
      hn::StoreU(better<kMax>(d, hn::LoadU(d, y + i), hn::LoadU(d, x + i)), d, y + i);
    }
    for (; i < cols; ++i) y[i] = better_scalar<kMax>(y[i], x[i]);
  }
}

// for (i < n) sum += kSquare ? (x[i] - c)^2 : x[i];
template <bool kSquare, class T>
HWY_INLINE double sum_row(const T* x, std::int64_t n, double c) {
  const hn::ScalableTag<double> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto vc = hn::Set(d, c);
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  const auto add = [&](auto s, auto v) HWY_ATTR {
    if constexpr (kSquare) {
      const auto e = hn::Sub(v, vc);
      return hn::MulAdd(e, e, s);
    } else {
      return hn::Add(s, v);
    }
  };
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    s0 = add(s0, load_f64(x + i));
    s1 = add(s1, load_f64(x + i + lanes));
    s2 = add(s2, load_f64(x + i + 2 * lanes));
    s3 = add(s3, load_f64(x + i + 3 * lanes));
  }
  double sum = SumLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)));
  for (; i < n; ++i) {
    const double e = static_cast<double>(x[i]) - c;
    sum += kSquare ? e * e : static_cast<double>(x[i]);
  }
  return sum;
}

// for (k < n) for (i < cols) sums[i] += kSquare ? (x[k * stride + i] - c[i])^2 : x[k * stride + i];
template <bool kSquare, class T>
HWY_INLINE void sum_columns(const T* x, std::int64_t stride, std::int64_t n, std::int64_t cols,
                            const double* c, double* sums) {
  const hn::ScalableTag<double> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t k = 0; k < n; ++k, x += stride) {
    std::int64_t i = 0;
    for (; i + lanes <= cols; i += lanes) {
      auto v = load_f64(x + i);
      if constexpr (kSquare) {
        v = hn::Sub(v, hn::LoadU(d, c + i));
        v = hn::Mul(v, v);
      }
      hn::StoreU(hn::Add(hn::LoadU(d, sums + i), v), d, sums + i);
    }
    for (; i < cols; ++i) {
      const auto v = static_cast<double>(x[i]);
      sums[i] += kSquare ? (v - c[i]) * (v - c[i]) : v;
    }
  }
}

template <class T>
HWY_INLINE T any_extreme_row(Extreme which, const T* x, std::int64_t n) {
  return which == Extreme::max ? extreme_row<true>(x, n) : extreme_row<false>(x, n);
}
template <class T>
HWY_INLINE void any_extreme_columns(Extreme which, const T* x, std::int64_t stride, std::int64_t n,
                                    std::int64_t cols, T* y) {
  which == Extreme::max ? extreme_columns<true>(x, stride, n, cols, y)
                        : extreme_columns<false>(x, stride, n, cols, y);
}

float extreme_row_f32(Extreme which, const float* x, std::int64_t n) {
  return any_extreme_row(which, x, n);
}
double extreme_row_f64(Extreme which, const double* x, std::int64_t n) {
  return any_extreme_row(which, x, n);
}
void extreme_columns_f32(Extreme which, const float* x, std::int64_t stride, std::int64_t n,
                         std::int64_t cols, float* y) {
  any_extreme_columns(which, x, stride, n, cols, y);
}
void extreme_columns_f64(Extreme which, const double* x, std::int64_t stride, std::int64_t n,
                         std::int64_t cols, double* y) {
  any_extreme_columns(which, x, stride, n, cols, y);
}
double sum_f32(const float* x, std::int64_t n) { return sum_row<false>(x, n, 0); }
double sum_f64(const double* x, std::int64_t n) { return sum_row<false>(x, n, 0); }
double squares_f32(const float* x, std::int64_t n, double c) { return sum_row<true>(x, n, c); }
double squares_f64(const double* x, std::int64_t n, double c) { return sum_row<true>(x, n, c); }

// Both passes over a strip of at most kReduceStrip columns.
template <class T>
HWY_INLINE void square_columns(Centre centre, const T* x, std::int64_t stride, std::int64_t n,
                               std::int64_t cols, double* y) {
  double c[kReduceStrip] = {};
  if (centre == Centre::mean) {
    sum_columns<false>(x, stride, n, cols, nullptr, c);
    for (std::int64_t i = 0; i < cols; ++i) c[i] /= static_cast<double>(n);
  }
  std::fill(y, y + cols, 0.0);
  sum_columns<true>(x, stride, n, cols, c, y);
}
void square_columns_f32(Centre centre, const float* x, std::int64_t stride, std::int64_t n,
                        std::int64_t cols, double* y) {
  square_columns(centre, x, stride, n, cols, y);
}
void square_columns_f64(Centre centre, const double* x, std::int64_t stride, std::int64_t n,
                        std::int64_t cols, double* y) {
  square_columns(centre, x, stride, n, cols, y);
}

}  // namespace
}  // namespace norma::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <vector>

#include "core/parallel.h"

namespace norma::kernels {

HWY_EXPORT(extreme_row_f32);
HWY_EXPORT(extreme_row_f64);
HWY_EXPORT(extreme_columns_f32);
HWY_EXPORT(extreme_columns_f64);
HWY_EXPORT(sum_f32);
HWY_EXPORT(sum_f64);
HWY_EXPORT(squares_f32);
HWY_EXPORT(squares_f64);
HWY_EXPORT(square_columns_f32);
HWY_EXPORT(square_columns_f64);

namespace {

// The same names for both types.
float extreme_row(Extreme w, const float* x, std::int64_t n) {
  return HWY_DYNAMIC_DISPATCH(extreme_row_f32)(w, x, n);
}
double extreme_row(Extreme w, const double* x, std::int64_t n) {
  return HWY_DYNAMIC_DISPATCH(extreme_row_f64)(w, x, n);
}
void extreme_columns(Extreme w, const float* x, std::int64_t stride, std::int64_t n,
                     std::int64_t cols, float* y) {
  HWY_DYNAMIC_DISPATCH(extreme_columns_f32)(w, x, stride, n, cols, y);
}
void extreme_columns(Extreme w, const double* x, std::int64_t stride, std::int64_t n,
                     std::int64_t cols, double* y) {
  HWY_DYNAMIC_DISPATCH(extreme_columns_f64)(w, x, stride, n, cols, y);
}
double row_sum(const float* x, std::int64_t n) { return HWY_DYNAMIC_DISPATCH(sum_f32)(x, n); }
double row_sum(const double* x, std::int64_t n) { return HWY_DYNAMIC_DISPATCH(sum_f64)(x, n); }
double row_squares(const float* x, std::int64_t n, double c) {
  return HWY_DYNAMIC_DISPATCH(squares_f32)(x, n, c);
}
double row_squares(const double* x, std::int64_t n, double c) {
  return HWY_DYNAMIC_DISPATCH(squares_f64)(x, n, c);
}
void column_squares(Centre centre, const float* x, std::int64_t stride, std::int64_t n,
                    std::int64_t cols, double* y) {
  HWY_DYNAMIC_DISPATCH(square_columns_f32)(centre, x, stride, n, cols, y);
}
void column_squares(Centre centre, const double* x, std::int64_t stride, std::int64_t n,
                    std::int64_t cols, double* y) {
  HWY_DYNAMIC_DISPATCH(square_columns_f64)(centre, x, stride, n, cols, y);
}

// Calls f(row) for each row of n elements.
template <class F>
void for_rows(std::int64_t rows, std::int64_t n, F f) {
  parallel_for(rows, std::max<std::int64_t>(1, kReduceGrain / std::max<std::int64_t>(1, n)),
               [&](std::int64_t b, std::int64_t e) {
                 for (std::int64_t r = b; r < e; ++r) f(r);
               });
}

// Calls f(x offset, y offset, columns) for strips of at most kReduceStrip columns of each outer
// index.
template <class F>
void for_strips(std::int64_t outer, std::int64_t n, std::int64_t inner, F f) {
  const std::int64_t width = std::min(inner, kReduceStrip);
  const std::int64_t strips = divide_up(inner, width);
  for_rows(outer * strips, n * width, [&](std::int64_t task) {
    const std::int64_t o = task / strips, c = task % strips * width;
    f(o * n * inner + c, o * inner + c, std::min(width, inner - c));
  });
}

template <class T>
void extreme_any(Extreme which, const T* x, std::int64_t outer, std::int64_t n, std::int64_t inner,
                 T* y) {
  if (outer * inner == 0) return;
  if (inner > 1) {
    for_strips(outer, n, inner, [&](std::int64_t from, std::int64_t to, std::int64_t cols) {
      extreme_columns(which, x + from, inner, n, cols, y + to);
    });
    return;
  }
  if (outer > 1 || n <= kReduceGrain) {
    for_rows(outer, n, [&](std::int64_t r) { y[r] = extreme_row(which, x + r * n, n); });
    return;
  }
  std::vector<T> best(static_cast<std::size_t>(divide_up(n, kReduceGrain)));
  parallel_for(n, kReduceGrain, [&](std::int64_t b, std::int64_t e) {
    best[static_cast<std::size_t>(b / kReduceGrain)] = extreme_row(which, x + b, e - b);
  });
  y[0] = extreme_row(which, best.data(), static_cast<std::int64_t>(best.size()));
}

template <class T>
void argmax_any(const T* x, std::int64_t outer, std::int64_t n, std::int64_t inner,
                std::int64_t* y) {
  if (outer * inner == 0) return;
  const auto find = [&](const T* first, T m) {
    for (std::int64_t k = 0; k < n; ++k) {
      const T v = first[k * inner];
      if (v == m || (std::isnan(v) && std::isnan(m))) return k;
    }
    return n;
  };
  for_rows(outer, n * inner, [&](std::int64_t o) {
    std::vector<T> m(static_cast<std::size_t>(inner));
    const T* first = x + o * n * inner;
    if (inner == 1) {
      m[0] = extreme_row(Extreme::max, first, n);
    } else {
      extreme_columns(Extreme::max, first, inner, n, inner, m.data());
    }
    for (std::int64_t i = 0; i < inner; ++i) {
      y[o * inner + i] = find(first + i, m[static_cast<std::size_t>(i)]);
    }
  });
}

template <class T>
void squares_any(Centre centre, const T* x, std::int64_t outer, std::int64_t n, std::int64_t inner,
                 double* y) {
  if (outer * inner == 0) return;
  if (inner > 1) {
    for_strips(outer, n, inner, [&](std::int64_t from, std::int64_t to, std::int64_t cols) {
      column_squares(centre, x + from, inner, n, cols, y + to);
    });
    return;
  }
  if (outer > 1 || n <= kReduceGrain) {
    for_rows(outer, n, [&](std::int64_t r) {
      const T* row = x + r * n;
      const double c = centre == Centre::mean ? row_sum(row, n) / static_cast<double>(n) : 0.0;
      y[r] = row_squares(row, n, c);
    });
    return;
  }
  const auto over_chunks = [&](auto f) {
    return parallel_sum<double>(n, kReduceGrain,
                                [&](std::int64_t b, std::int64_t e) { return f(x + b, e - b); });
  };
  double c = 0;
  if (centre == Centre::mean) {
    c = over_chunks([](const T* p, std::int64_t k) { return row_sum(p, k); }) /
        static_cast<double>(n);
  }
  y[0] = over_chunks([c](const T* p, std::int64_t k) { return row_squares(p, k, c); });
}

}  // namespace

void extreme(Extreme which, const float* x, std::int64_t outer, std::int64_t n, std::int64_t inner,
             float* y) {
  extreme_any(which, x, outer, n, inner, y);
}
void extreme(Extreme which, const double* x, std::int64_t outer, std::int64_t n, std::int64_t inner,
             double* y) {
  extreme_any(which, x, outer, n, inner, y);
}
void argmax(const float* x, std::int64_t outer, std::int64_t n, std::int64_t inner,
            std::int64_t* y) {
  argmax_any(x, outer, n, inner, y);
}
void argmax(const double* x, std::int64_t outer, std::int64_t n, std::int64_t inner,
            std::int64_t* y) {
  argmax_any(x, outer, n, inner, y);
}
void sum_squares(Centre centre, const float* x, std::int64_t outer, std::int64_t n,
                 std::int64_t inner, double* y) {
  squares_any(centre, x, outer, n, inner, y);
}
void sum_squares(Centre centre, const double* x, std::int64_t outer, std::int64_t n,
                 std::int64_t inner, double* y) {
  squares_any(centre, x, outer, n, inner, y);
}

}  // namespace norma::kernels
#endif  // HWY_ONCE
