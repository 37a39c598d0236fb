// Vector functions of the exponential family, for the whole range: infinities and NaN come out as
// in <cmath>. f32 is computed in vectors, to a few units in the last place; f64, which serves
// gradient checks, calls <cmath> lane by lane.
//
// Polynomials: minimax fits of their own (Lawson's iteration over 400 Chebyshev points, against
// 40-digit values).
#if defined(NORMA_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMA_MATH_INL_H_
#undef NORMA_MATH_INL_H_
#else
#define NORMA_MATH_INL_H_
#endif

#include <cmath>
#include <cstddef>
#include <limits>

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace norma::kernels::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
inline constexpr bool kIsF32 = sizeof(hn::TFromD<D>) == 4;

// for (i < lanes) y[i] = f(x[i]);
template <class D, class V, class F>
HWY_INLINE V lane_by_lane(D d, V x, F f) {
  using T = hn::TFromD<D>;
  HWY_ALIGN T lanes[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(x, d, lanes);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = f(lanes[i]);
  return hn::Load(d, lanes);
}

template <class D>
HWY_INLINE hn::Vec<D> set(D d, double value) {
  return hn::Set(d, static_cast<hn::TFromD<D>>(value));
}

// x held above (below) a bound; NaN stays. The instructions of x86 give their second operand if one
// is NaN; elsewhere Highway does not say.
template <class D, class V>
HWY_INLINE V at_least(D d, V x, double low) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  return hn::Max(set(d, low), x);
#else
  return hn::IfThenElse(hn::Lt(x, set(d, low)), set(d, low), x);
#endif
}
template <class D, class V>
HWY_INLINE V at_most(D d, V x, double high) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  return hn::Min(set(d, high), x);
#else
  return hn::IfThenElse(hn::Gt(x, set(d, high)), set(d, high), x);
#endif
}
template <class D, class V>
HWY_INLINE V clamp(D d, V x, double low, double high) {
  return at_most(d, at_least(d, x, low), high);
}

// c[0] + c[1] x + ... by Horner's rule.
template <class D, class V>
HWY_INLINE V horner(D, V, V sum) {
  return sum;
}
template <class D, class V, class... C>
HWY_INLINE V horner(D d, V x, V sum, float c, C... rest) {
  return horner(d, x, hn::MulAdd(sum, x, hn::Set(d, c)), rest...);
}
// Coefficients from the highest power down.
template <class D, class V, class... C>
HWY_INLINE V polynomial(D d, V x, float c, C... rest) {
  return horner(d, x, hn::Set(d, c), rest...);
}

// r = x - n ln 2, with ln 2 in two parts; the first has 9 bits, so that its product with n is
// exact.
template <class D, class V>
HWY_INLINE V reduced(D d, V x, V n) {
  const V r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x);
  return hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
}
// e^r - 1 = r + r^2 p for |r| <= 0.392; relative error of e^r 7.2e-9.
template <class D, class V>
HWY_INLINE V expm1_reduced(D d, V r) {
  const V p = polynomial(d, r, 0.0013794475f, 0.008378464f, 0.041669462f, 0.16666429f, 0.49999985f);
  return hn::MulAdd(hn::Mul(r, r), p, r);
}

// e^x = (1 + r + r^2 p) 2^n, f32. x within [-105, 89] or NaN.
template <class D, class V>
struct ExpParts {
  V expm1_r;  // r + r^2 p
  hn::Vec<hn::RebindToSigned<D>> n;
};
template <class D, class V>
HWY_INLINE ExpParts<D, V> exp_parts(D d, V x) {
  const auto n = hn::NearestInt(hn::Mul(x, hn::Set(d, 1.44269504f)));
  return {expm1_reduced(d, reduced(d, x, hn::ConvertTo(d, n))), n};
}

// x 2^n in two steps, since 2^n itself may be out of range.
template <class D, class V, class N>
HWY_INLINE V scale_by_power(D d, V x, N n) {
  const hn::RebindToSigned<D> di;
  const auto half = hn::ShiftRight<1>(n);
  const auto bias = hn::Set(di, 127);
  const V first = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(half, bias)));
  const V second = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::Sub(n, half), bias)));
  return hn::Mul(hn::Mul(x, first), second);
}

// Below it e^x is less than the least normal number.
inline constexpr double kExpLow = -87.33;

// e^x, f32, for x in [kExpLow, 0]. adjust(r), of at most 0.045 from r, takes the place of r, which
// is x less a multiple of ln 2.
template <class D, class V, class F>
HWY_INLINE V exp_normal(D d, V x, const F& adjust) {
  // The last bits of 1.5 2^23 + 127 + n are n + 127: 2^n after a shift to the exponent's place.
  const V magic = hn::Set(d, 12582912.0f + 127.0f);
  const V shifted = hn::MulAdd(x, hn::Set(d, 1.44269504f), magic);
  const V r = adjust(reduced(d, x, hn::Sub(shifted, magic)));
  const hn::RebindToSigned<D> di;
  const V power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, shifted)));
  return hn::MulAdd(expm1_reduced(d, r), power, power);
}

// e^(h + l), f32, for h <= 0 and |l| <= 0.045. What is below the least normal number becomes 0.
template <class D, class V>
HWY_INLINE V exp_sum_negative(D d, V h, V l) {
  const V y = exp_normal(d, at_least(d, h, kExpLow), [&](V r) HWY_ATTR { return hn::Add(r, l); });
  return hn::IfThenZeroElse(hn::Lt(h, set(d, kExpLow)), y);
}

// e^x. f32: 1 unit in the last place.
template <class D, class V>
HWY_INLINE V exp(D d, V x) {
  if constexpr (kIsF32<D>) {
    const auto parts = exp_parts(d, clamp(d, x, -105.0, 89.0));
    return scale_by_power(d, hn::Add(parts.expm1_r, hn::Set(d, 1.0f)), parts.n);
  } else {
    return lane_by_lane(d, x, [](double v) { return std::exp(v); });
  }
}

// The same, f32, to be added to numbers near 1: what is below the least normal number becomes that.
template <class D, class V>
HWY_INLINE V exp_negative_of_sum(D d, V x) {
  return exp_normal(d, at_least(d, x, kExpLow), [](V r) HWY_ATTR { return r; });
}

// e^x for x <= 0 (or NaN). f32: what is below the least normal number becomes 0.
template <class D, class V>
HWY_INLINE V exp_negative(D d, V x) {
  if constexpr (kIsF32<D>) {
    return hn::IfThenZeroElse(hn::Lt(x, set(d, kExpLow)), exp_negative_of_sum(d, x));
  } else {
    return exp(d, x);
  }
}

// e^x - 1 for x <= 0 (or NaN), with small relative error near 0.
template <class D, class V>
HWY_INLINE V expm1_negative(D d, V x) {
  if constexpr (kIsF32<D>) {
    // Below -40 the result is -1.
    const auto parts = exp_parts(d, clamp(d, x, -40.0, 0.0));
    const V one = hn::Set(d, 1.0f);
    const V power = scale_by_power(d, one, parts.n);
    return hn::MulAdd(power, parts.expm1_r, hn::Sub(power, one));
  } else {
    return lane_by_lane(d, x, [](double v) { return std::expm1(v); });
  }
}

// ln x: -inf at 0, NaN below.
template <class D, class V>
HWY_INLINE V log(D d, V x) {
  if constexpr (kIsF32<D>) {
    const V infinity = set(d, std::numeric_limits<float>::infinity());
    V y = hn::Log(d, x);
    y = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Neg(infinity), y);
    y = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), set(d, std::numeric_limits<float>::quiet_NaN()), y);
    return hn::IfThenElse(hn::Lt(x, infinity), y, hn::Add(x, x));
  } else {
    return lane_by_lane(d, x, [](double v) { return std::log(v); });
  }
}

// 1 / x for x in [2^-100, 2^100], f32: 1 unit in the last place. A step of Newton's iteration from
// 14 bits takes a third of a division's time.
template <class D, class V>
HWY_INLINE V reciprocal(D d, V x) {
#if HWY_TARGET <= HWY_AVX3
  const V r = hn::ApproximateReciprocal(x);
  return hn::MulAdd(r, hn::NegMulAdd(x, r, hn::Set(d, 1.0f)), r);
#else
  return hn::Div(hn::Set(d, 1.0f), x);
#endif
}

// 1 / (1 + e^-x), with small relative error in both tails: from t = e^-|x|.
template <class D, class V>
HWY_INLINE V sigmoid(D d, V x) {
  const V one = set(d, 1.0);
  const V t = exp_negative(d, hn::Neg(hn::Abs(x)));
  const V above = hn::IfThenElse(hn::Ge(x, hn::Zero(d)), one, t);
  if constexpr (kIsF32<D>) {
    return hn::Mul(above, reciprocal(d, hn::Add(one, t)));
  } else {
    return hn::Div(above, hn::Add(one, t));
  }
}

template <class D, class V>
HWY_INLINE V tanh(D d, V x) {
  if constexpr (kIsF32<D>) {
    const V a = hn::Abs(x);
    const V one = hn::Set(d, 1.0f);
    const V t = exp_negative(d, hn::Mul(a, hn::Set(d, -2.0f)));
    const V large = hn::CopySign(hn::Div(hn::Sub(one, t), hn::Add(one, t)), x);
    // (tanh(x) / x - 1) / x^2 in z = x^2; relative error of tanh 4.2e-9.
    const V z = hn::Mul(x, x);
    const V p =
        polynomial(d, z, -0.005717045f, 0.020650588f, -0.053743497f, 0.13331491f, -0.33333284f);
    return hn::IfThenElse(hn::Lt(a, hn::Set(d, 0.625f)), hn::Mul(x, hn::MulAdd(z, p, one)), large);
  } else {
    return lane_by_lane(d, x, [](double v) { return std::tanh(v); });
  }
}

// The normal distribution at u >= 0, in f32 up to 15, from where on both are 0: its tail beyond u,
// 1/2 erfc(u / sqrt 2), with small relative error, and e^(-u^2 / 2).
template <class V>
struct Gauss {
  V tail;
  V exp;
};
template <class D, class V>
HWY_INLINE Gauss<V> gauss(D d, V u) {
  if constexpr (kIsF32<D>) {
    const V minus_half = hn::Set(d, -0.5f);
    // u^2 = square + rest, exactly.
    const V square = hn::Mul(u, u);
#if !HWY_NATIVE_FMA
    // Without a fused product: the upper 12 bits of u squared are exact, and so is what is left.
    const hn::RebindToUnsigned<D> du;
    const V upper = hn::BitCast(d, hn::And(hn::BitCast(du, u), hn::Set(du, 0xfffff000u)));
    const V rest = hn::Add(hn::Sub(hn::Mul(upper, upper), square),
                           hn::Mul(hn::Sub(u, upper), hn::Add(u, upper)));
#else
    const V rest = hn::MulSub(u, u, square);
#endif
    const V e = exp_sum_negative(d, hn::Mul(square, minus_half), hn::Mul(rest, minus_half));
    // tail e^(u^2/2) (u + 3) in s = (u - 3) / (u + 3), u <= 14.5; relative error 5.2e-8.
    const V three = hn::Set(d, 3.0f);
    const V inverse = reciprocal(d, hn::Add(u, three));
    const V s = hn::Mul(hn::Sub(u, three), inverse);
    const V p = polynomial(d, s, -0.00026299022f, -0.0008977558f, 0.0010747324f, 0.006920008f,
                           -0.010480093f, -0.047255285f, 0.2300194f, -0.5093323f, 0.72908366f);
    return {hn::Mul(hn::Mul(p, inverse), e), e};
  } else {
    return {lane_by_lane(d, u, [](double v) { return 0.5 * std::erfc(v / std::sqrt(2.0)); }),
            lane_by_lane(d, u, [](double v) { return std::exp(-0.5 * v * v); })};
  }
}

template <class D, class V>
HWY_INLINE V erf(D d, V x) {
  if constexpr (kIsF32<D>) {
    const V one = hn::Set(d, 1.0f);
    const V u = at_most(d, hn::Abs(hn::Mul(x, hn::Set(d, 1.41421356f))), 15.0);
    const V tail = gauss(d, u).tail;
    const V large = hn::CopySign(hn::NegMulAdd(hn::Set(d, 2.0f), tail, one), x);
    // erf(x) / x in z = x^2 for |x| <= 1; relative error 4e-8.
    const V z = hn::Mul(x, x);
    const V p = polynomial(d, z, -0.00056314224f, 0.0049175513f, -0.026711311f, 0.1128018f,
                           -0.37612325f, 1.1283791f);
    return hn::IfThenElse(hn::Lt(hn::Abs(x), one), hn::Mul(x, p), large);
  } else {
    return lane_by_lane(d, x, [](double v) { return std::erf(v); });
  }
}

// ln(1 + e^x) = max(x, 0) + ln(1 + e^-|x|).
template <class D, class V>
HWY_INLINE V softplus(D d, V x) {
  const V t = exp_negative(d, hn::Neg(hn::Abs(x)));
  const V positive = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x);
  if constexpr (kIsF32<D>) {
    return hn::Add(positive, hn::Log1p(d, t));
  } else {
    return hn::Add(positive, lane_by_lane(d, t, [](double v) { return std::log1p(v); }));
  }
}

}  // namespace
}  // namespace norma::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // NORMA_MATH_INL_H_
