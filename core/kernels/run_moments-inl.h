// Mean and variance of a run in two passes, for the kernels of norms. Include it behind
// hwy/highway.h in a file that is compiled once an instruction set.
#if defined(NORMA_KERNELS_RUN_MOMENTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMA_KERNELS_RUN_MOMENTS_INL_H_
#undef NORMA_KERNELS_RUN_MOMENTS_INL_H_
#else
#define NORMA_KERNELS_RUN_MOMENTS_INL_H_
#endif

#include <cmath>
#include <cstdint>

#include "core/kernels/moments.h"
#include "core/kernels/tail-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace norma::kernels::HWY_NAMESPACE {

// The mean of a run; exact where all are equal, since they are summed as differences from the
// first. beside(i) as for SumOf().
template <class D, class T, class Beside = Nothing>
HWY_INLINE double MeanOf(D d, const T* HWY_RESTRICT x, std::int64_t n, const Beside& beside = {}) {
  const auto first = hn::Set(d, x[0]);
  const double shifted = SumOf(
      d, x, n, [&](auto v) HWY_ATTR { return hn::Sub(v, first); }, beside);
  return static_cast<double>(x[0]) + shifted / static_cast<double>(n);
}

// double s = 0; for (i = 0; i < n; ++i) s += (x[i] - centre) * (x[i] - centre);
template <class D, class T>
HWY_INLINE double SquaresAround(D d, const T* HWY_RESTRICT x, std::int64_t n, T centre) {
  const auto c = hn::Set(d, centre);
  return SumOf(d, x, n, [&](auto v) HWY_ATTR {
    const auto difference = hn::Sub(v, c);
    return hn::Mul(difference, difference);
  });
}

// sum (x[i] - mean)^2 / n.
template <class D, class T>
HWY_INLINE double VarianceOf(D d, const T* HWY_RESTRICT x, std::int64_t n, double mean) {
  const T rounded = static_cast<T>(mean);
  const double squares = SquaresAround(d, x, n, rounded);
  const double error = static_cast<double>(rounded) - mean;
  if (!std::isfinite(squares)) return squares;
  return HWY_MAX(0.0, squares / static_cast<double>(n) - error * error);
}

// The variance of a run whose mean is MeanOf(d, x, n). Where its first element lies far from the
// others, the differences from it have lost their digits: then the mean is taken once more, from
// where it has been found to lie. Sixteen deviations lose one digit.
template <class D, class T>
HWY_INLINE void FinishMoments(D d, const T* HWY_RESTRICT x, std::int64_t n, Moments& m) {
  constexpr double kFar = 16 * 16;
  m.var = VarianceOf(d, x, n, m.mean);
  const double away = static_cast<double>(x[0]) - m.mean;
  if (!(away * away > kFar * m.var)) return;
  const T found = static_cast<T>(m.mean);
  const auto from = hn::Set(d, found);
  const double shifted = SumOf(d, x, n, [&](auto v) HWY_ATTR { return hn::Sub(v, from); });
  m.mean = static_cast<double>(found) + shifted / static_cast<double>(n);
  m.var = VarianceOf(d, x, n, m.mean);
}

}  // namespace norma::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
