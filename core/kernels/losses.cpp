#include "core/kernels/losses.h"

#include <algorithm>
#include <cmath>

#include "core/parallel.h"

namespace norma::kernels {
namespace {

// Elements of a chunk.
constexpr std::int64_t kChunk = 16384;

double value(Loss loss, double delta, double x, double t) {
  const double d = x - t, a = std::abs(d);
  switch (loss) {
    case Loss::mse:
      return d * d;
    case Loss::mae:
      return a;
    case Loss::huber:
      return a <= delta ? 0.5 * d * d : delta * (a - 0.5 * delta);
    case Loss::bce:
      return std::max(x, 0.0) - x * t + std::log1p(std::exp(-std::abs(x)));
  }
  return 0;
}

struct Slope {
  double x, t;
};

Slope slope(Loss loss, double delta, double x, double t) {
  const double d = x - t;
  switch (loss) {
    case Loss::mse:
      return {2 * d, -2 * d};
    case Loss::mae: {
      const double s = d > 0 ? 1.0 : d < 0 ? -1.0 : d;  // 0 at 0, NaN at NaN
      return {s, -s};
    }
    case Loss::huber: {
      const double s = std::clamp(d, -delta, delta);
      return {s, -s};
    }
    case Loss::bce: {
      const double e = std::exp(-std::abs(x));
      return {(x >= 0 ? 1.0 : e) / (1.0 + e) - t, -x};
    }
  }
  return {0, 0};
}

template <class T>
double sum_any(Loss loss, double delta, const T* x, const T* t, std::int64_t n) {
  return parallel_sum<double>(n, kChunk, [&](std::int64_t b, std::int64_t e) {
    double sum = 0;
    for (std::int64_t i = b; i < e; ++i) {
      sum += value(loss, delta, static_cast<double>(x[i]), static_cast<double>(t[i]));
    }
    return sum;
  });
}

template <class T>
void put(LossGradient to, std::int64_t i, double g) {
  if (!to.data) return;
  T& place = static_cast<T*>(to.data)[i];
  place = static_cast<T>(to.accumulate ? static_cast<double>(place) + g : g);
}

template <class T>
void backward_any(Loss loss, double delta, double scale, const T* x, const T* t, std::int64_t n,
                  LossGradient dx, LossGradient dt) {
  parallel_for(n, kChunk, [&](std::int64_t b, std::int64_t e) {
    for (std::int64_t i = b; i < e; ++i) {
      const Slope s = slope(loss, delta, static_cast<double>(x[i]), static_cast<double>(t[i]));
      put<T>(dx, i, scale * s.x);
      put<T>(dt, i, scale * s.t);
    }
  });
}

}  // namespace

double loss_sum(Loss loss, double delta, const float* x, const float* t, std::int64_t n) {
  return sum_any(loss, delta, x, t, n);
}
double loss_sum(Loss loss, double delta, const double* x, const double* t, std::int64_t n) {
  return sum_any(loss, delta, x, t, n);
}
void loss_backward(Loss loss, double delta, double scale, const float* x, const float* t,
                   std::int64_t n, LossGradient dx, LossGradient dt) {
  backward_any(loss, delta, scale, x, t, n, dx, dt);
}
void loss_backward(Loss loss, double delta, double scale, const double* x, const double* t,
                   std::int64_t n, LossGradient dx, LossGradient dt) {
  backward_any(loss, delta, scale, x, t, n, dx, dt);
}

}  // namespace norma::kernels
