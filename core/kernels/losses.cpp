#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/losses.cpp"
#include "hwy/foreach_target.h"  // must come before the vector headers
//
#include "core/kernels/exp_rows-inl.h"
#include "core/kernels/losses.h"

HWY_BEFORE_NAMESPACE();
namespace norma::kernels::HWY_NAMESPACE {
namespace {

// Every loss has its value, and its slopes in x and in t.
struct Mse {
  template <class D, class V>
  HWY_INLINE V value(D, V x, V t) const {
    const V d = hn::Sub(x, t);
    return hn::Mul(d, d);
  }
  template <class D, class V>
  HWY_INLINE V slope(D, V x, V t) const {
    const V d = hn::Sub(x, t);
    return hn::Add(d, d);
  }
  template <class D, class V>
  HWY_INLINE V target_slope(D d, V x, V t) const {
    return hn::Neg(slope(d, x, t));
  }
};

struct Mae {
  template <class D, class V>
  HWY_INLINE V value(D, V x, V t) const {
    return hn::Abs(hn::Sub(x, t));
  }
  // The sign of x - t: 0 where it is 0, NaN where it is NaN.
  template <class D, class V>
  HWY_INLINE V slope(D d, V x, V t) const {
    const V e = hn::Sub(x, t), zero = hn::Zero(d);
    const V minus = hn::IfThenElse(hn::Lt(e, zero), hn::Set(d, -1.0f), e);
    return hn::IfThenElse(hn::Gt(e, zero), hn::Set(d, 1.0f), minus);
  }
  template <class D, class V>
  HWY_INLINE V target_slope(D d, V x, V t) const {
    return hn::Neg(slope(d, x, t));
  }
};

struct Huber {
  double delta;
  // With c = min(|d|, delta): 0.5 c^2 + delta (|d| - c).
  template <class D, class V>
  HWY_INLINE V value(D d, V x, V t) const {
    using T = hn::TFromD<D>;
    const V a = hn::Abs(hn::Sub(x, t)), limit = hn::Set(d, static_cast<T>(delta));
    const V c = hn::Min(a, limit);
    return hn::MulAdd(limit, hn::Sub(a, c), hn::Mul(hn::Set(d, T(0.5)), hn::Mul(c, c)));
  }
  template <class D, class V>
  HWY_INLINE V slope(D d, V x, V t) const {
    const V e = hn::Sub(x, t), limit = hn::Set(d, static_cast<hn::TFromD<D>>(delta));
    const V clamped = hn::Min(hn::Max(e, hn::Neg(limit)), limit);
    return hn::IfThenElse(hn::Eq(e, e), clamped, e);
  }
  template <class D, class V>
  HWY_INLINE V target_slope(D d, V x, V t) const {
    return hn::Neg(slope(d, x, t));
  }
};

struct Bce {
  // max(x, 0) - x t + log(1 + exp(-|x|)); a NaN stays in x t.
  template <class D, class V>
  HWY_INLINE V value(D d, V x, V t) const {
    const V rest = hn::Log1p(d, hn::Exp(d, hn::Neg(hn::Abs(x))));
    return hn::Add(hn::NegMulAdd(x, t, hn::Max(x, hn::Zero(d))), rest);
  }
  // sigmoid(x) - t, from exp(-|x|), which does not overflow.
  template <class D, class V>
  HWY_INLINE V slope(D d, V x, V t) const {
    const V one = hn::Set(d, 1.0f), e = exp_keeping_nan(d, hn::Neg(hn::Abs(x)));
    const V upper = hn::IfThenElse(hn::Ge(x, hn::Zero(d)), one, e);
    return hn::Sub(hn::Div(upper, hn::Add(one, e)), t);
  }
  template <class D, class V>
  HWY_INLINE V target_slope(D, V x, V) const {
    return hn::Neg(x);
  }
};

// for (i < n) sum += loss.value(x[i], t[i]);
template <class L, class T>
HWY_INLINE double sum_of(const L& loss, const T* x, const T* t, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  double sum = 0;
  for (std::int64_t i = 0; i < n;) {
    const std::int64_t end = std::min(n, i + kExpBlock);
    auto s0 = hn::Zero(d), s1 = s0;
    for (; i + 2 * lanes <= end; i += 2 * lanes) {
      s0 = hn::Add(s0, loss.value(d, hn::LoadU(d, x + i), hn::LoadU(d, t + i)));
      s1 = hn::Add(s1, loss.value(d, hn::LoadU(d, x + i + lanes), hn::LoadU(d, t + i + lanes)));
    }
    for (; i < end; i += lanes) {
      const std::int64_t count = std::min(lanes, end - i);
      if (count == lanes) {
        s0 = hn::Add(s0, loss.value(d, hn::LoadU(d, x + i), hn::LoadU(d, t + i)));
      } else {
        const auto v = loss.value(d, LoadTail(d, x + i, count), LoadTail(d, t + i, count));
        s1 = hn::Add(s1, hn::IfThenElseZero(hn::FirstN(d, static_cast<std::size_t>(count)), v));
      }
    }
    i = end;
    sum += static_cast<double>(SumLanes(d, hn::Add(s0, s1)));
  }
  return sum;
}

// for (i < count) to[i] (+)= g[i]; count is at most a vector.
template <class D, class V, class T>
HWY_INLINE void put(D d, V g, LossGradient<T> to, std::int64_t i, std::int64_t count) {
  if (count == static_cast<std::int64_t>(hn::Lanes(d))) {
    if (to.accumulate) g = hn::Add(g, hn::LoadU(d, to.data + i));
    hn::StoreU(g, d, to.data + i);
  } else {
    if (to.accumulate) g = hn::Add(g, LoadTail(d, to.data + i, count));
    StoreTail(g, d, to.data + i, count);
  }
}

// for (i < n) { dx[i] (+)= scale * slope(x[i], t[i]); dt[i] (+)= scale * target_slope(x[i], t[i]);
// }
template <class L, class T>
HWY_INLINE void slopes_of(const L& loss, T scale, const T* x, const T* t, std::int64_t n,
                          LossGradient<T> dx, LossGradient<T> dt) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto s = hn::Set(d, scale);
  for (std::int64_t i = 0; i < n; i += lanes) {
    const std::int64_t count = std::min(lanes, n - i);
    const auto vx = count == lanes ? hn::LoadU(d, x + i) : LoadTail(d, x + i, count);
    const auto vt = count == lanes ? hn::LoadU(d, t + i) : LoadTail(d, t + i, count);
    if (dx.data) put(d, hn::Mul(s, loss.slope(d, vx, vt)), dx, i, count);
    if (dt.data) put(d, hn::Mul(s, loss.target_slope(d, vx, vt)), dt, i, count);
  }
}

template <class T>
HWY_INLINE double any_sum(Loss loss, double delta, const T* x, const T* t, std::int64_t n) {
  switch (loss) {
    case Loss::mse:
      return sum_of(Mse{}, x, t, n);
    case Loss::mae:
      return sum_of(Mae{}, x, t, n);
    case Loss::huber:
      return sum_of(Huber{delta}, x, t, n);
    default:
      return sum_of(Bce{}, x, t, n);
  }
}

template <class T>
HWY_INLINE void any_slopes(Loss loss, double delta, T scale, const T* x, const T* t, std::int64_t n,
                           LossGradient<T> dx, LossGradient<T> dt) {
  switch (loss) {
    case Loss::mse:
      return slopes_of(Mse{}, scale, x, t, n, dx, dt);
    case Loss::mae:
      return slopes_of(Mae{}, scale, x, t, n, dx, dt);
    case Loss::huber:
      return slopes_of(Huber{delta}, scale, x, t, n, dx, dt);
    default:
      return slopes_of(Bce{}, scale, x, t, n, dx, dt);
  }
}

double sum_f32(Loss loss, double delta, const float* x, const float* t, std::int64_t n) {
  return any_sum(loss, delta, x, t, n);
}
double sum_f64(Loss loss, double delta, const double* x, const double* t, std::int64_t n) {
  return any_sum(loss, delta, x, t, n);
}
void slopes_f32(Loss loss, double delta, float scale, const float* x, const float* t,
                std::int64_t n, LossGradient<float> dx, LossGradient<float> dt) {
  any_slopes(loss, delta, scale, x, t, n, dx, dt);
}
void slopes_f64(Loss loss, double delta, double scale, const double* x, const double* t,
                std::int64_t n, LossGradient<double> dx, LossGradient<double> dt) {
  any_slopes(loss, delta, scale, x, t, n, dx, dt);
}

}  // namespace
}  // namespace norma::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "core/parallel.h"

namespace norma::kernels {

HWY_EXPORT(sum_f32);
HWY_EXPORT(sum_f64);
HWY_EXPORT(slopes_f32);
HWY_EXPORT(slopes_f64);

namespace {

// Elements of a chunk.
constexpr std::int64_t kChunk = 32768;

template <class T>
LossGradient<T> from(LossGradient<T> g, std::int64_t i) {
  if (g.data) g.data += i;
  return g;
}

}  // namespace

double loss_sum(Loss loss, double delta, const float* x, const float* t, std::int64_t n) {
  return parallel_sum<double>(n, kChunk, [&](std::int64_t b, std::int64_t e) {
    return HWY_DYNAMIC_DISPATCH(sum_f32)(loss, delta, x + b, t + b, e - b);
  });
}
double loss_sum(Loss loss, double delta, const double* x, const double* t, std::int64_t n) {
  return parallel_sum<double>(n, kChunk, [&](std::int64_t b, std::int64_t e) {
    return HWY_DYNAMIC_DISPATCH(sum_f64)(loss, delta, x + b, t + b, e - b);
  });
}
void loss_backward(Loss loss, double delta, double scale, const float* x, const float* t,
                   std::int64_t n, LossGradient<float> dx, LossGradient<float> dt) {
  parallel_for(n, kChunk, [&](std::int64_t b, std::int64_t e) {
    HWY_DYNAMIC_DISPATCH(slopes_f32)
    (loss, delta, static_cast<float>(scale), x + b, t + b, e - b, from(dx, b), from(dt, b));
  });
}
void loss_backward(Loss loss, double delta, double scale, const double* x, const double* t,
                   std::int64_t n, LossGradient<double> dx, LossGradient<double> dt) {
  parallel_for(n, kChunk, [&](std::int64_t b, std::int64_t e) {
    HWY_DYNAMIC_DISPATCH(slopes_f64)
    (loss, delta, scale, x + b, t + b, e - b, from(dx, b), from(dt, b));
  });
}

}  // namespace norma::kernels
#endif  // HWY_ONCE
