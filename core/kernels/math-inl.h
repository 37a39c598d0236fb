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
#include <cstdint>
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

// A step of an exponential's argument, in one part and in two; the first of these has few bits (9,
// of the finer one 12), so that its product with a number of steps is exact.
struct ExpStep {
  float whole, high, low;
};
// ln 2: from one power of 2 to the next.
inline constexpr ExpStep kOctave{0.693147182f, 0.693359375f, -2.12194440e-4f};

// x - n step.
template <class D, class V>
HWY_INLINE V reduced(D d, V x, V n, ExpStep step) {
  const V r = hn::NegMulAdd(n, hn::Set(d, step.high), x);
  return hn::NegMulAdd(n, hn::Set(d, step.low), r);
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
  return {expm1_reduced(d, reduced(d, x, hn::ConvertTo(d, n), kOctave)), n};
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

// Note [Tables in registers]. AVX-512 looks 16 values up at once in a table of 16 or 32 floats that
// lies in registers, beside two multiplications a cycle and as fast as these. So there e^x takes
// the nearest of 16 steps of an octave from a table and a polynomial of degree 3 for the rest, and
// the tail of the normal distribution is 32 pieces of degree 4: GELU takes 12.5 cycles a vector in
// the place of 18, and an exponential of a sum 4.5 in the place of 6. Relative errors, measured: of
// e^x 1.1e-7 (9e-8 without tables, since those are rounded), of the tail 1.3e-7 (3.2e-7).
#if HWY_TARGET <= HWY_AVX3
inline constexpr bool kHasTables = true;
#else
inline constexpr bool kHasTables = false;
#endif

// An octave in the exponent of e^x is so many steps; the shift takes their number's last bits,
// above those of the step, to the exponent's place.
inline constexpr float kSteps = kHasTables ? 16.0f : 1.0f;
inline constexpr int kStepShift = kHasTables ? 19 : 23;
// What is added to the number of steps makes that the last bits of a float: 1.5 2^23, without a
// table with the exponent's bias.
inline constexpr float kStepMagic = kHasTables ? 12582912.0f : 12582912.0f + 127.0f;
// ln 2 / kSteps.
inline constexpr ExpStep kStep =
    kHasTables ? ExpStep{0.0433216988f, 0.0433197021484375f, 1.99663656e-6f} : kOctave;

#if HWY_TARGET <= HWY_AVX3
// Bits of 2^(j / 16), less j << 19.
alignas(64) inline constexpr std::uint32_t kPowers[16] = {
    0x3f800000, 0x3f7daac3, 0x3f7b95c2, 0x3f79c3d3, 0x3f7837f0, 0x3f76f532, 0x3f75fed7, 0x3f75583f,
    0x3f7504f3, 0x3f7508a4, 0x3f75672a, 0x3f76248c, 0x3f7744fd, 0x3f78ccdf, 0x3f7ac0c7, 0x3f7d257d};
#endif

// 2^(n / kSteps) for shifted = kStepMagic + n, as a normal number.
template <class D, class V>
HWY_INLINE V power_of_steps(D d, V shifted) {
  const hn::RebindToSigned<D> di;
  const auto bits = hn::BitCast(di, shifted);
#if HWY_TARGET <= HWY_AVX3
  static_assert(hn::MaxLanes(D()) == 16, "the tables are for whole vectors of f32");
  // The look sees the last four bits.
  const decltype(bits) step{_mm512_permutexvar_epi32(bits.raw, _mm512_load_si512(kPowers))};
  return hn::BitCast(d, hn::Add(step, hn::ShiftLeft<kStepShift>(bits)));
#else
  return hn::BitCast(d, hn::ShiftLeft<kStepShift>(bits));
#endif
}

// e^r - 1 for |r| <= ln 2 / 2 / kSteps and a little more; relative error of e^r 1.6e-9 with tables.
template <class D, class V>
HWY_INLINE V expm1_of_step(D d, V r) {
  if constexpr (kHasTables) {
    const V p = hn::MulAdd(r, hn::Set(d, 0.16667025f), hn::Set(d, 0.5000162f));
    return hn::MulAdd(hn::Mul(r, r), p, r);
  } else {
    return expm1_reduced(d, r);
  }
}

// Below it e^x is less than the least normal number.
inline constexpr double kExpLow = -87.33;

// e^x, f32, for x in [kExpLow, 0], where rest(n) = x - n ln 2 / kSteps; anything below.
template <class D, class V, class F>
HWY_INLINE V exp_normal(D d, V x, const F& rest) {
  const V magic = hn::Set(d, kStepMagic);
  const V shifted = hn::MulAdd(x, hn::Set(d, kSteps * 1.44269504f), magic);
  const V power = power_of_steps(d, shifted);
  return hn::MulAdd(expm1_of_step(d, rest(hn::Sub(shifted, magic))), power, power);
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

// The same, f32, for a term of a sum of at least 1: what is below the least normal number becomes
// that, and the relative error grows by 2.7e-9 |x| (without a fused product 6e-8 |x|).
template <class D, class V>
HWY_INLINE V exp_negative_of_sum(D d, V x) {
  const V high = at_least(d, x, kExpLow);
  return exp_normal(d, high,
                    [&](V n) HWY_ATTR { return hn::NegMulAdd(n, hn::Set(d, kStep.whole), high); });
}

// e^x for x <= 0 (or NaN). f32: what is below the least normal number becomes 0.
template <class D, class V>
HWY_INLINE V exp_negative(D d, V x) {
  if constexpr (kIsF32<D>) {
    const V y = exp_normal(d, x, [&](V n) HWY_ATTR { return reduced(d, x, n, kStep); });
    return hn::IfThenZeroElse(hn::Lt(x, set(d, kExpLow)), y);
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
