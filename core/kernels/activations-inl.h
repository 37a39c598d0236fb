// Activation functions in vectors: for each, `value` f(x), and `slope` f'(x) from x or from y as
// gradient_reads_output() says. The functions that may be a gate have `both`.
//
// Note [Infinities of activations]. x s(x) with s -> 0 is 0 times infinity at x = -inf, and the
// slope has such products at both ends. There x is held within bounds beyond which s is 0 or 1 to
// the last bit, so the limits come out: x or 0, slope 1 or 0. NaN stays NaN.
#if defined(NORMA_ACTIVATIONS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMA_ACTIVATIONS_INL_H_
#undef NORMA_ACTIVATIONS_INL_H_
#else
#define NORMA_ACTIVATIONS_INL_H_
#endif

#include "core/kernels/gauss-inl.h"
#include "core/kernels/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace norma::kernels::HWY_NAMESPACE {
namespace {

template <class V>
struct ValueSlope {
  V value;
  V slope;
};

// max(x, 0). At 0 the slope is 0. A gradient of infinity stays out where the slope is 0.
struct Relu {
  template <class D, class V>
  HWY_INLINE V value(D d, V x) const {
    return hn::IfThenZeroElse(hn::Le(x, hn::Zero(d)), x);
  }
  template <class D, class V>
  HWY_INLINE V times_slope(D d, V y, V dy) const {
    return hn::IfThenZeroElse(hn::Le(y, hn::Zero(d)), dy);
  }
  template <class D, class V>
  HWY_INLINE ValueSlope<V> both(D d, V x) const {
    return {value(d, x), hn::IfThenZeroElse(hn::Le(x, hn::Zero(d)), set(d, 1.0))};
  }
};

// x where x > 0, else a x.
struct LeakyRelu {
  double a;
  template <class D, class V>
  HWY_INLINE V value(D d, V x) const {
    return times_slope(d, x, x);
  }
  template <class D, class V>
  HWY_INLINE V times_slope(D d, V x, V dy) const {
    return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), dy, hn::Mul(dy, set(d, a)));
  }
};

// What follows has a slope that is always finite.
template <class F>
struct Smooth {
  template <class D, class V>
  HWY_INLINE V times_slope(D d, V s, V dy) const {
    return hn::Mul(dy, static_cast<const F*>(this)->slope(d, s));
  }
};

// x P(x) and P(x) + x p(x), with P the normal distribution and p its density. In u = |x| and the
// tail Q(u): max(x, 0) - u Q, and Q - u p below 0, 1 - (Q - u p) above.
struct Gelu : Smooth<Gelu> {
  template <class D, class V>
  HWY_INLINE ValueSlope<V> both(D d, V x) const {
    const V u = at_most(d, hn::Abs(x), kGaussEnd<D>);
    const Gauss<V> g = gauss(d, u);
    const V scaled = hn::Mul(u, set(d, 0.39894228040143267794));  // u / sqrt(2 pi)
    const V below = hn::NegMulAdd(scaled, g.exp, g.tail);
    const V slope = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), below, hn::Sub(set(d, 1.0), below));
    return {hn::NegMulAdd(u, g.tail, at_least(d, x, 0.0)), slope};
  }
  template <class D, class V>
  HWY_INLINE V value(D d, V x) const {
    return both(d, x).value;
  }
  template <class D, class V>
  HWY_INLINE V slope(D d, V x) const {
    return both(d, x).slope;
  }
};

// x s(2 c (x + k x^3)), s the logistic function, c = sqrt(2 / pi), k = 0.044715: the same as
// x / 2 (1 + tanh(c (x + k x^3))), without the cancellation in the lower tail.
struct GeluTanh : Smooth<GeluTanh> {
  template <class D, class V>
  HWY_INLINE ValueSlope<V> both(D d, V x) const {
    const double bound = kIsF32<D> ? 12.0 : 24.0;  // e^-142 and e^-1024 are 0
    const V c2 = set(d, 1.5957691216057307117);    // 2 c
    const V k = set(d, 0.044715);
    const V one = set(d, 1.0);
    const V h = clamp(d, x, -bound, bound);
    const V kh2 = hn::Mul(k, hn::Mul(h, h));
    const V s = sigmoid(d, hn::Mul(c2, hn::MulAdd(kh2, h, h)));
    const V dz = hn::Mul(c2, hn::MulAdd(set(d, 3.0), kh2, one));
    return {hn::Mul(at_least(d, x, -bound), s),
            hn::MulAdd(hn::Mul(h, hn::Mul(s, hn::Sub(one, s))), dz, s)};
  }
  template <class D, class V>
  HWY_INLINE V value(D d, V x) const {
    return both(d, x).value;
  }
  template <class D, class V>
  HWY_INLINE V slope(D d, V x) const {
    return both(d, x).slope;
  }
};

// x s(x), s the logistic function.
struct Silu : Smooth<Silu> {
  template <class D, class V>
  HWY_INLINE ValueSlope<V> both(D d, V x) const {
    const double bound = kIsF32<D> ? 110.0 : 800.0;  // e^-bound is 0
    const V one = set(d, 1.0);
    const V s = sigmoid(d, x);
    const V h = clamp(d, x, -bound, bound);
    return {hn::Mul(at_least(d, x, -bound), s), hn::Mul(s, hn::MulAdd(h, hn::Sub(one, s), one))};
  }
  template <class D, class V>
  HWY_INLINE V value(D d, V x) const {
    return both(d, x).value;
  }
  template <class D, class V>
  HWY_INLINE V slope(D d, V x) const {
    return both(d, x).slope;
  }
};

struct Softplus : Smooth<Softplus> {
  template <class D, class V>
  HWY_INLINE V value(D d, V x) const {
    return softplus(d, x);
  }
  template <class D, class V>
  HWY_INLINE V slope(D d, V x) const {
    return sigmoid(d, x);
  }
};

// x where x > 0, else a (e^x - 1).
struct Elu : Smooth<Elu> {
  explicit Elu(double alpha) : a(alpha) {}
  double a;
  template <class D, class V>
  HWY_INLINE V value(D d, V x) const {
    const V e = expm1_negative(d, hn::IfThenZeroElse(hn::Gt(x, hn::Zero(d)), x));
    return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), x, hn::Mul(e, set(d, a)));
  }
  template <class D, class V>
  HWY_INLINE V slope(D d, V x) const {
    const V e = exp_negative(d, hn::IfThenZeroElse(hn::Gt(x, hn::Zero(d)), x));
    return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), set(d, 1.0), hn::Mul(e, set(d, a)));
  }
};

// 1 - y^2.
struct TanhOutput : Smooth<TanhOutput> {
  template <class D, class V>
  HWY_INLINE V value(D d, V x) const {
    return tanh(d, x);
  }
  template <class D, class V>
  HWY_INLINE V slope(D d, V y) const {
    return hn::NegMulAdd(y, y, set(d, 1.0));
  }
};

// y (1 - y).
struct SigmoidOutput : Smooth<SigmoidOutput> {
  template <class D, class V>
  HWY_INLINE V value(D d, V x) const {
    return sigmoid(d, x);
  }
  template <class D, class V>
  HWY_INLINE V slope(D d, V y) const {
    return hn::Mul(y, hn::Sub(set(d, 1.0), y));
  }
};

}  // namespace
}  // namespace norma::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // NORMA_ACTIVATIONS_INL_H_
