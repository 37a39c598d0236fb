#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/cross_entropy.cpp"
#include "hwy/foreach_target.h"  // must come before the vector headers
//
#include "core/kernels/cross_entropy.h"
#include "core/kernels/exp_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace norma::kernels::HWY_NAMESPACE {
namespace {

// The loss of one row. All that is left after the sums runs in f64, with the maximum taken off
// first: two equal logits of 1e8 give log 2.
template <class T>
HWY_INLINE double row_loss(const CrossEntropyShape& s, const RowSums<T>& sums, T at_target,
                           T* stats) {
  const double log_sum = std::log(sums.exp);
  stats[0] = sums.max;
  stats[1] = static_cast<T>(log_sum);
  // Only -inf: there is nothing to choose from. A NaN beside it has made log_sum NaN.
  if (sums.max == kMinusInfinity<T>) return -log_sum;
  const auto max = static_cast<double>(sums.max);
  const double nll = log_sum - (static_cast<double>(at_target) - max);
  double loss = nll;
  if (s.label_smoothing > 0) {
    const double uniform = log_sum - (sums.plain / static_cast<double>(s.cols) - max);
    loss = (1 - s.label_smoothing) * nll + s.label_smoothing * uniform;
  }
  const double z = max + log_sum;
  return s.z_loss > 0 ? loss + s.z_loss * z * z : loss;
}

template <class T>
HWY_INLINE double loss_rows(const CrossEntropyShape& s, const T* x, const std::int64_t* targets,
                            std::int64_t rows, T* stats) {
  RowSums<T> sums[kMostRows];
  const std::int64_t together = rows_together(s.cols);
  double sum = 0;
  for (std::int64_t r = 0; r < rows;) {
    // Rows that count, together; a row that does not costs nothing.
    std::int64_t n = 0;
    while (n < together && r + n < rows && !(s.has_ignore && targets[r + n] == s.ignore)) ++n;
    if (n == 0) {
      stats[2 * r] = stats[2 * r + 1] = 0;
      ++r;
      continue;
    }
    const T* block = x + r * s.cols;
    s.label_smoothing > 0 ? sums_of_rows<true>(block, n, s.cols, sums)
                          : sums_of_rows<false>(block, n, s.cols, sums);
    for (std::int64_t i = 0; i < n; ++i) {
      sum += row_loss(s, sums[i], block[i * s.cols + targets[r + i]], stats + 2 * (r + i));
    }
    r += n;
  }
  return sum;
}

// Elements that are asked for ahead of their use: further than a core foresees by itself.
constexpr std::int64_t kAhead = 1024;

// for (i < n) dx[i] (+)= a * exp((x[i] - max) - log_sum) - b; this thread goes on to x[left - 1].
template <bool kAccumulate, class T>
HWY_INLINE void gradient_row(const T* x, std::int64_t n, T max, T log_sum, T a, T b, T* dx,
                             std::int64_t left) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto vmax = hn::Set(d, max), vlog = hn::Set(d, log_sum);
  const auto va = hn::Set(d, a), vb = hn::Set(d, b);
  const auto gradient = [&](auto v) HWY_ATTR {
    const auto p = exp_keeping_nan(d, hn::Sub(hn::Sub(v, vmax), vlog));
    return hn::MulSub(va, p, vb);
  };
  std::int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    if (i + kAhead < left) PrefetchRun(x + i + kAhead, 2 * lanes);
    auto g0 = gradient(hn::LoadU(d, x + i));
    auto g1 = gradient(hn::LoadU(d, x + i + lanes));
    if constexpr (kAccumulate) {
      g0 = hn::Add(g0, hn::LoadU(d, dx + i));
      g1 = hn::Add(g1, hn::LoadU(d, dx + i + lanes));
    }
    hn::StoreU(g0, d, dx + i);
    hn::StoreU(g1, d, dx + i + lanes);
  }
  for (; i + lanes <= n; i += lanes) {
    auto g = gradient(hn::LoadU(d, x + i));
    if constexpr (kAccumulate) g = hn::Add(g, hn::LoadU(d, dx + i));
    hn::StoreU(g, d, dx + i);
  }
  if (i < n) {
    auto g = gradient(LoadTail(d, x + i, n - i));
    if constexpr (kAccumulate) g = hn::Add(g, LoadTail(d, dx + i, n - i));
    StoreTail(g, d, dx + i, n - i);
  }
}

template <class T>
HWY_INLINE void gradient_rows(const CrossEntropyShape& s, const T* x, const std::int64_t* targets,
                              const T* stats, std::int64_t rows, double scale, bool accumulate,
                              T* dx) {
  for (std::int64_t r = 0; r < rows; ++r, x += s.cols, dx += s.cols) {
    const T max = stats[2 * r], log_sum = stats[2 * r + 1];
    if ((s.has_ignore && targets[r] == s.ignore) || log_sum == kMinusInfinity<T>) {
      if (!accumulate) std::fill(dx, dx + s.cols, T{0});
      continue;
    }
    const double z = static_cast<double>(max) + static_cast<double>(log_sum);
    const T a = static_cast<T>(scale * (1 + 2 * s.z_loss * z));
    const T b = static_cast<T>(scale * s.label_smoothing / static_cast<double>(s.cols));
    const std::int64_t left = (rows - r) * s.cols;
    accumulate ? gradient_row<true>(x, s.cols, max, log_sum, a, b, dx, left)
               : gradient_row<false>(x, s.cols, max, log_sum, a, b, dx, left);
    dx[targets[r]] -= static_cast<T>(scale * (1 - s.label_smoothing));
  }
}

double loss_f32(const CrossEntropyShape& s, const float* x, const std::int64_t* targets,
                std::int64_t rows, float* stats) {
  return loss_rows(s, x, targets, rows, stats);
}
double loss_f64(const CrossEntropyShape& s, const double* x, const std::int64_t* targets,
                std::int64_t rows, double* stats) {
  return loss_rows(s, x, targets, rows, stats);
}
void gradient_f32(const CrossEntropyShape& s, const float* x, const std::int64_t* targets,
                  const float* stats, std::int64_t rows, double scale, bool accumulate, float* dx) {
  gradient_rows(s, x, targets, stats, rows, scale, accumulate, dx);
}
void gradient_f64(const CrossEntropyShape& s, const double* x, const std::int64_t* targets,
                  const double* stats, std::int64_t rows, double scale, bool accumulate,
                  double* dx) {
  gradient_rows(s, x, targets, stats, rows, scale, accumulate, dx);
}

}  // namespace
}  // namespace norma::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "core/parallel.h"

namespace norma::kernels {

HWY_EXPORT(loss_f32);
HWY_EXPORT(loss_f64);
HWY_EXPORT(gradient_f32);
HWY_EXPORT(gradient_f64);

namespace {

constexpr std::int64_t kChunk = 16384;  // elements, some 20 us

template <class T, class F>
double forward(F f, const CrossEntropyShape& s, const T* x, const std::int64_t* targets, T* stats) {
  return parallel_sum<double>(s.rows, row_grain(s.rows, s.cols, kChunk),
                              [&](std::int64_t b, std::int64_t e) {
                                return f(s, x + b * s.cols, targets + b, e - b, stats + 2 * b);
                              });
}

template <class T, class F>
void backward(F f, const CrossEntropyShape& s, const T* x, const std::int64_t* targets,
              const T* stats, double scale, bool accumulate, T* dx) {
  parallel_for(s.rows, row_grain(s.rows, s.cols, kChunk), [&](std::int64_t b, std::int64_t e) {
    f(s, x + b * s.cols, targets + b, stats + 2 * b, e - b, scale, accumulate, dx + b * s.cols);
  });
}

}  // namespace

double cross_entropy(const CrossEntropyShape& shape, const float* x, const std::int64_t* targets,
                     float* stats) {
  return forward([](auto... a) { return HWY_DYNAMIC_DISPATCH(loss_f32)(a...); }, shape, x, targets,
                 stats);
}
double cross_entropy(const CrossEntropyShape& shape, const double* x, const std::int64_t* targets,
                     double* stats) {
  return forward([](auto... a) { return HWY_DYNAMIC_DISPATCH(loss_f64)(a...); }, shape, x, targets,
                 stats);
}
void cross_entropy_backward(const CrossEntropyShape& shape, const float* x,
                            const std::int64_t* targets, const float* stats, double scale,
                            bool accumulate, float* dx) {
  backward([](auto... a) { return HWY_DYNAMIC_DISPATCH(gradient_f32)(a...); }, shape, x, targets,
           stats, scale, accumulate, dx);
}
void cross_entropy_backward(const CrossEntropyShape& shape, const double* x,
                            const std::int64_t* targets, const double* stats, double scale,
                            bool accumulate, double* dx) {
  backward([](auto... a) { return HWY_DYNAMIC_DISPATCH(gradient_f64)(a...); }, shape, x, targets,
           stats, scale, accumulate, dx);
}

}  // namespace norma::kernels
#endif  // HWY_ONCE
