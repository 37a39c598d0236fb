#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/softmax.cpp"
#include "hwy/foreach_target.h"  // must come before the vector headers
//
#include "core/kernels/exp_rows-inl.h"
#include "core/kernels/softmax.h"
#include "core/kernels/vector_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace norma::kernels::HWY_NAMESPACE {
namespace {

template <class T>
struct Scale {
  T factor;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V v) const {
    return hn::Mul(v, hn::Set(d, factor));
  }
};

template <class T>
struct Shift {
  T max, log_sum;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V v) const {
    return hn::Sub(hn::Sub(v, hn::Set(d, max)), hn::Set(d, log_sum));
  }
};

// A row whose largest element is -inf, or that holds nothing but NaN.
template <class T>
void degenerate_row(SoftmaxForm form, const T* x, std::int64_t n, T* y) {
  const T masked = form == SoftmaxForm::plain ? T{0} : kMinusInfinity<T>;
  std::fill(y, y + n, has_nan(x, n) ? std::numeric_limits<T>::quiet_NaN() : masked);
}

template <class T>
HWY_INLINE void log_softmax_rows(const T* x, std::int64_t rows, std::int64_t cols, T* y) {
  for (std::int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    const RowSums<T> sums = row_sums<false>(x, cols);
    if (sums.max == kMinusInfinity<T>) {
      degenerate_row(SoftmaxForm::logarithm, x, cols, y);
    } else {
      map(x, y, static_cast<std::size_t>(cols),
          Shift<T>{sums.max, static_cast<T>(std::log(sums.exp))});
    }
  }
}

template <class T>
HWY_INLINE void softmax_rows(SoftmaxForm form, const T* x, std::int64_t rows, std::int64_t cols,
                             T* y, bool past) {
  if (form == SoftmaxForm::logarithm) return log_softmax_rows(x, rows, cols, y);
  // The exponentials of rows that go past the caches, which are short, wait here for their sum.
  HWY_ALIGN T waiting[kExpBlock];
  T max[kMostRows];
  double sum[kMostRows];
  const std::int64_t together = rows_together(2 * cols);
  for (std::int64_t begin = 0; begin < rows;
       begin += together, x += together * cols, y += together * cols) {
    const std::int64_t n = std::min(together, rows - begin);
    T* const e = past ? waiting : y;
    for (std::int64_t r = 0; r < n; ++r) max[r] = max_of(x + r * cols, cols);
    for (std::int64_t r = 0; r < n; ++r) {
      sum[r] = 0;
      for (std::int64_t b = r * cols, end = b + cols; b < end; b += kExpBlock) {
        sum[r] += sum_exp_block<true, T>(x + b, std::min(kExpBlock, end - b), max[r], e + b,
                                         cols > kExpBlock ? nullptr : x + b + n * cols);
      }
    }
    for (std::int64_t r = 0; r < n; ++r) {
      if (max[r] == kMinusInfinity<T>) {
        degenerate_row(form, x + r * cols, cols, y + r * cols);
      } else {
        map(e + r * cols, y + r * cols, static_cast<std::size_t>(cols),
            Scale<T>{static_cast<T>(1.0 / sum[r])}, past);
      }
    }
  }
  FlushStores(past);
}

// for (i < n) sum += a[i] * b[i];
template <class T>
HWY_INLINE double dot_row(const T* a, const T* b, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  double sum = 0;
  for (std::int64_t i = 0; i < n;) {
    const std::int64_t end = std::min(n, i + kExpBlock);
    auto s0 = hn::Zero(d), s1 = s0;
    for (; i + 2 * lanes <= end; i += 2 * lanes) {
      s0 = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), s0);
      s1 = hn::MulAdd(hn::LoadU(d, a + i + lanes), hn::LoadU(d, b + i + lanes), s1);
    }
    for (; i + lanes <= end; i += lanes) {
      s0 = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), s0);
    }
    if (i < end) {
      s1 = hn::MulAdd(LoadTail(d, a + i, end - i), LoadTail(d, b + i, end - i), s1);
      i = end;
    }
    sum += static_cast<double>(SumLanes(d, hn::Add(s0, s1)));
  }
  return sum;
}

// for (i < n) dx[i] (+)= y[i] * (dy[i] - s), or dy[i] - exp(y[i]) * s;
template <bool kLog, bool kAccumulate, class T>
HWY_INLINE void gradient_row(const T* y, const T* dy, std::int64_t n, T s, T* dx) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto vs = hn::Set(d, s);
  const auto gradient = [&](auto vy, auto vdy) HWY_ATTR {
    if constexpr (kLog) {
      return hn::NegMulAdd(exp_keeping_nan(d, vy), vs, vdy);
    } else {
      return hn::Mul(vy, hn::Sub(vdy, vs));
    }
  };
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    auto g = gradient(hn::LoadU(d, y + i), hn::LoadU(d, dy + i));
    if constexpr (kAccumulate) g = hn::Add(g, hn::LoadU(d, dx + i));
    hn::StoreU(g, d, dx + i);
  }
  if (i < n) {
    auto g = gradient(LoadTail(d, y + i, n - i), LoadTail(d, dy + i, n - i));
    if constexpr (kAccumulate) g = hn::Add(g, LoadTail(d, dx + i, n - i));
    StoreTail(g, d, dx + i, n - i);
  }
}

template <class T>
HWY_INLINE void gradient_rows(SoftmaxForm form, const T* y, const T* dy, std::int64_t rows,
                              std::int64_t cols, bool accumulate, T* dx) {
  for (std::int64_t r = 0; r < rows; ++r, y += cols, dy += cols, dx += cols) {
    if (form == SoftmaxForm::plain) {
      const T s = static_cast<T>(dot_row(y, dy, cols));
      accumulate ? gradient_row<false, true>(y, dy, cols, s, dx)
                 : gradient_row<false, false>(y, dy, cols, s, dx);
      continue;
    }
    if (std::all_of(y, y + cols, [](T v) { return v == kMinusInfinity<T>; })) {
      if (!accumulate) std::fill(dx, dx + cols, T{0});
      continue;
    }
    double sum = 0;
    for (std::int64_t b = 0; b < cols; b += kExpBlock) {
      sum += sum_block(dy + b, std::min(kExpBlock, cols - b));
    }
    const T s = static_cast<T>(sum);
    accumulate ? gradient_row<true, true>(y, dy, cols, s, dx)
               : gradient_row<true, false>(y, dy, cols, s, dx);
  }
}

template <class T>
HWY_INLINE void log_sum_rows(const T* x, std::int64_t rows, std::int64_t cols, T* y) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const RowSums<T> sums = row_sums<false>(x + r * cols, cols);
    const double log_sum = std::log(sums.exp);
    // Only -inf leaves the sum at 0; a NaN beside it has made log_sum NaN.
    y[r] = sums.max == kMinusInfinity<T> ? static_cast<T>(log_sum)
                                         : static_cast<T>(static_cast<double>(sums.max) + log_sum);
  }
}

void log_sum_f32(const float* x, std::int64_t rows, std::int64_t cols, float* y) {
  log_sum_rows(x, rows, cols, y);
}
void log_sum_f64(const double* x, std::int64_t rows, std::int64_t cols, double* y) {
  log_sum_rows(x, rows, cols, y);
}
void softmax_f32(SoftmaxForm form, const float* x, std::int64_t rows, std::int64_t cols, float* y,
                 bool past) {
  softmax_rows(form, x, rows, cols, y, past);
}
void softmax_f64(SoftmaxForm form, const double* x, std::int64_t rows, std::int64_t cols, double* y,
                 bool past) {
  softmax_rows(form, x, rows, cols, y, past);
}
void gradient_f32(SoftmaxForm form, const float* y, const float* dy, std::int64_t rows,
                  std::int64_t cols, bool accumulate, float* dx) {
  gradient_rows(form, y, dy, rows, cols, accumulate, dx);
}
void gradient_f64(SoftmaxForm form, const double* y, const double* dy, std::int64_t rows,
                  std::int64_t cols, bool accumulate, double* dx) {
  gradient_rows(form, y, dy, rows, cols, accumulate, dx);
}

}  // namespace
}  // namespace norma::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "core/kernels/past_cache.h"
#include "core/parallel.h"

namespace norma::kernels {

HWY_EXPORT(log_sum_f32);
HWY_EXPORT(log_sum_f64);
HWY_EXPORT(softmax_f32);
HWY_EXPORT(softmax_f64);
HWY_EXPORT(gradient_f32);
HWY_EXPORT(gradient_f64);

namespace {

constexpr std::int64_t kChunk = 16384;  // elements, some 20 us

template <class T, class F>
void forward(F f, SoftmaxForm form, const T* x, std::int64_t rows, std::int64_t cols, T* y) {
  if (cols == 0) return;
  // The exponentials of a row, or of several, wait in a block for their sum.
  const bool past = cols <= HWY_NAMESPACE::kExpBlock &&
                    past_cache(y, cols, 2 * rows * cols * static_cast<std::int64_t>(sizeof(T)),
                               form == SoftmaxForm::plain ? NextReader::product : NextReader::any);
  parallel_for(rows, row_grain(rows, cols, kChunk), [&](std::int64_t b, std::int64_t e) {
    f(form, x + b * cols, e - b, cols, y + b * cols, past);
  });
}

template <class T, class F>
void backward(F f, SoftmaxForm form, const T* y, const T* dy, std::int64_t rows, std::int64_t cols,
              bool accumulate, T* dx) {
  if (cols == 0) return;
  parallel_for(rows, row_grain(rows, cols, kChunk), [&](std::int64_t b, std::int64_t e) {
    f(form, y + b * cols, dy + b * cols, e - b, cols, accumulate, dx + b * cols);
  });
}

}  // namespace

void softmax(SoftmaxForm form, const float* x, std::int64_t rows, std::int64_t cols, float* y) {
  forward([](auto... a) { return HWY_DYNAMIC_DISPATCH(softmax_f32)(a...); }, form, x, rows, cols,
          y);
}
void softmax(SoftmaxForm form, const double* x, std::int64_t rows, std::int64_t cols, double* y) {
  forward([](auto... a) { return HWY_DYNAMIC_DISPATCH(softmax_f64)(a...); }, form, x, rows, cols,
          y);
}
void softmax_backward(SoftmaxForm form, const float* y, const float* dy, std::int64_t rows,
                      std::int64_t cols, bool accumulate, float* dx) {
  backward([](auto... a) { return HWY_DYNAMIC_DISPATCH(gradient_f32)(a...); }, form, y, dy, rows,
           cols, accumulate, dx);
}
void softmax_backward(SoftmaxForm form, const double* y, const double* dy, std::int64_t rows,
                      std::int64_t cols, bool accumulate, double* dx) {
  backward([](auto... a) { return HWY_DYNAMIC_DISPATCH(gradient_f64)(a...); }, form, y, dy, rows,
           cols, accumulate, dx);
}

void log_sum_exp(const float* x, std::int64_t rows, std::int64_t cols, float* y) {
  parallel_for(rows, row_grain(rows, cols, kChunk), [&](std::int64_t b, std::int64_t e) {
    HWY_DYNAMIC_DISPATCH(log_sum_f32)(x + b * cols, e - b, cols, y + b);
  });
}
void log_sum_exp(const double* x, std::int64_t rows, std::int64_t cols, double* y) {
  parallel_for(rows, row_grain(rows, cols, kChunk), [&](std::int64_t b, std::int64_t e) {
    HWY_DYNAMIC_DISPATCH(log_sum_f64)(x + b * cols, e - b, cols, y + b);
  });
}

}  // namespace norma::kernels
#endif  // HWY_ONCE
