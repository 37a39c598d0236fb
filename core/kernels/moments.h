// Mean and reciprocal deviation where plain sums leave the range of the type.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace norma::kernels {

struct Moments {
  double mean = 0;
  double var = 0;   // biased; the mean square where nothing is subtracted
  double rstd = 0;  // 1 / sqrt(var + eps); 0 where var + eps is 0, so that a constant run gives 0
};

// 1 / sqrt(var + eps), and 0 where the root is 0.
[[nodiscard]] inline double reciprocal_deviation(double var, double eps) {
  const double v = var + eps;
  return v == 0 ? 0.0 : 1.0 / std::sqrt(v);
}

// True iff sums of squares that gave `var` kept their precision in T: nothing became infinite, and
// nothing that counts beside eps fell below the normal numbers.
template <class T>
[[nodiscard]] bool in_range(double var, double eps) {
  constexpr double kSmall = sizeof(T) == 4 ? 1e-30 : 1e-280;
  return std::isfinite(var) && var + eps > kSmall;
}

// The moments of get(0), ..., get(n-1). Note [Scaled moments]: all values are divided by a power of
// two near the largest one, so that no square leaves the range; eps is divided by its square and
// therefore counts as much as before. Slow, and only for runs that are not in_range.
template <class Get>
[[nodiscard]] Moments scaled_moments(std::int64_t n, bool centre, double eps, const Get& get) {
  double largest = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double a = std::abs(static_cast<double>(get(i)));
    if (!(a <= std::numeric_limits<double>::max())) {
      const double nan = std::numeric_limits<double>::quiet_NaN();
      return {nan, nan, nan};
    }
    largest = std::max(largest, a);
  }
  Moments m;
  m.rstd = reciprocal_deviation(0, eps);
  if (largest == 0 || n == 0) return m;
  const int exponent = std::ilogb(largest);
  // As differences from the first, so that the mean of equal values is exact.
  const auto scaled = [&](std::int64_t i) {
    return std::ldexp(static_cast<double>(get(i)), -exponent);
  };
  double mean = 0;
  if (centre) {
    const double first = scaled(0);
    double shifted = 0;
    for (std::int64_t i = 0; i < n; ++i) shifted += scaled(i) - first;
    mean = first + shifted / static_cast<double>(n);
  }
  double squares = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double v = scaled(i) - mean;
    squares += v * v;
  }
  const double var = squares / static_cast<double>(n);
  m.mean = std::ldexp(mean, exponent);
  m.var = std::ldexp(var, 2 * exponent);
  m.rstd = std::ldexp(reciprocal_deviation(var, std::ldexp(eps, -2 * exponent)), -exponent);
  return m;
}

}  // namespace norma::kernels
