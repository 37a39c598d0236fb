#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/unary.cpp"
#include "hwy/foreach_target.h"  // must come before the vector headers
//
#include <cmath>

#include "core/kernels/gauss-inl.h"
#include "core/kernels/math-inl.h"
#include "core/kernels/unary.h"
#include "core/kernels/vector_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace norma::kernels::HWY_NAMESPACE {
namespace {

#define NORMA_UNARY(Name, expression)         \
  struct Name {                               \
    template <class D, class V>               \
    HWY_INLINE V operator()(D d, V x) const { \
      (void)d;                                \
      return expression;                      \
    }                                         \
  };
NORMA_UNARY(Neg, hn::Neg(x))
NORMA_UNARY(Exp, exp(d, x))
NORMA_UNARY(Log, log(d, x))
NORMA_UNARY(Sqrt, hn::Sqrt(x))
NORMA_UNARY(Rsqrt, hn::Div(set(d, 1.0), hn::Sqrt(x)))
NORMA_UNARY(Tanh, tanh(d, x))
NORMA_UNARY(Erf, erf(d, x))
NORMA_UNARY(Sigmoid, sigmoid(d, x))
NORMA_UNARY(Abs, hn::Abs(x))
NORMA_UNARY(Square, hn::Mul(x, x))
// Zero and NaN are their own sign.
NORMA_UNARY(Sign, hn::IfThenElse(hn::Gt(hn::Abs(x), hn::Zero(d)), hn::CopySign(set(d, 1.0), x), x))
NORMA_UNARY(Sin, lane_by_lane(d, x, [](auto v) { return std::sin(v); }))
NORMA_UNARY(Cos, lane_by_lane(d, x, [](auto v) { return std::cos(v); }))
#undef NORMA_UNARY

template <class T>
HWY_INLINE void unary_any(Unary op, const T* x, T* y, std::size_t n) {
  switch (op) {
    case Unary::neg:
      return map(x, y, n, Neg());
    case Unary::exp:
      return map(x, y, n, Exp());
    case Unary::log:
      return map(x, y, n, Log());
    case Unary::sqrt:
      return map(x, y, n, Sqrt());
    case Unary::rsqrt:
      return map(x, y, n, Rsqrt());
    case Unary::tanh:
      return map(x, y, n, Tanh());
    case Unary::erf:
      return map(x, y, n, Erf());
    case Unary::sigmoid:
      return map(x, y, n, Sigmoid());
    case Unary::abs:
      return map(x, y, n, Abs());
    case Unary::square:
      return map(x, y, n, Square());
    case Unary::sign:
      return map(x, y, n, Sign());
    case Unary::sin:
      return map(x, y, n, Sin());
    case Unary::cos:
      return map(x, y, n, Cos());
  }
}
void unary_f32(Unary op, const float* x, float* y, std::size_t n) { unary_any(op, x, y, n); }
void unary_f64(Unary op, const double* x, double* y, std::size_t n) { unary_any(op, x, y, n); }

}  // namespace
}  // namespace norma::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "core/parallel.h"

namespace norma::kernels {

HWY_EXPORT(unary_f32);
HWY_EXPORT(unary_f64);

namespace {

template <class T>
void power_scalar(const T* x, T p, T* y, std::int64_t n) {
  parallel_for(n, kPointwiseGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) y[i] = std::pow(x[i], p);
  });
}

template <class T>
void power_plan(const BroadcastPlan& plan, const T* a, const T* b, T* y) {
  for_each_slab(plan, [&](const Slab& s) {
    for (std::int64_t r = 0; r < s.rows; ++r) {
      const T* ar = a + s.in[0] + r * s.row_stride[0];
      const T* br = b + s.in[1] + r * s.row_stride[1];
      T* yr = y + s.out + r * s.cols;
      for (std::int64_t i = 0; i < s.cols; ++i) {
        yr[i] = std::pow(ar[i * s.col_stride[0]], br[i * s.col_stride[1]]);
      }
    }
  });
}

}  // namespace

void unary(Unary op, const float* x, float* y, std::int64_t n) {
  parallel_for(n, kPointwiseGrain, [&](std::int64_t b, std::int64_t e) {
    HWY_DYNAMIC_DISPATCH(unary_f32)(op, x + b, y + b, static_cast<std::size_t>(e - b));
  });
}
void unary(Unary op, const double* x, double* y, std::int64_t n) {
  parallel_for(n, kPointwiseGrain, [&](std::int64_t b, std::int64_t e) {
    HWY_DYNAMIC_DISPATCH(unary_f64)(op, x + b, y + b, static_cast<std::size_t>(e - b));
  });
}

void power(const float* x, double p, float* y, std::int64_t n) {
  power_scalar(x, static_cast<float>(p), y, n);
}
void power(const double* x, double p, double* y, std::int64_t n) { power_scalar(x, p, y, n); }
void power(const BroadcastPlan& plan, const float* a, const float* b, float* y) {
  power_plan(plan, a, b, y);
}
void power(const BroadcastPlan& plan, const double* a, const double* b, double* y) {
  power_plan(plan, a, b, y);
}

}  // namespace norma::kernels
#endif  // HWY_ONCE
