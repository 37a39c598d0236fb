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

// The normal distribution's tail beyond u times e^(u^2 / 2), for 0 <= u <= 14.5.
#if HWY_TARGET <= HWY_AVX3
// Pieces between the numbers whose 1 + u has three bits behind its first; where that is 1 to 2 they
// stand last. Coefficients by powers of the distance from a piece's begin, fits of minimax as
// above; relative error before rounding 6e-8. See Note [Tables in registers].
alignas(64) inline constexpr float kTail[5][32] = {
    {0.2615783f,   0.23076032f,  0.20578067f,  0.18523167f,  0.168102f,   0.15365194f,  0.14133133f,
     0.13072473f,  0.12151394f,  0.10634515f,  0.09441064f,  0.08480339f, 0.0769193f,   0.0703427f,
     0.06477931f,  0.060015675f, 0.05589348f,  0.049122546f, 0.04379879f, 0.039506692f, 0.03597489f,
     0.033018973f, 0.030509414f, 0.028352661f, 0.5f,         0.45379323f, 0.4140321f,   0.37960443f,
     0.34961882f,  0.32335618f,  0.30023247f,  0.27977058f},
    {-0.13736299f,  -0.110491246f,  -0.09027087f,   -0.074786596f, -0.0627381f,    -0.053225297f,
     -0.045613866f, -0.0394492f,    -0.03439983f,   -0.026733918f, -0.021299532f,  -0.017326908f,
     -0.01434569f,  -0.012057422f,  -0.010266367f,  -0.008840373f, -0.007687735f,  -0.005961826f,
     -0.004753135f, -0.0038753138f, -0.0032184795f, -0.002714618f, -0.0023198859f, -0.002005029f,
     -0.3989417f,   -0.3422177f,    -0.29543394f,   -0.25659037f,  -0.22413267f,   -0.19684453f,
     -0.17376782f,  -0.15414295f},
    {0.06207477f,    0.046302333f,  0.035173733f,   0.027168686f,   0.021306936f,   0.016943421f,
     0.013645487f,   0.011117702f,  0.009146552f,   0.0063824016f,  0.0046029314f,  0.0034141717f,
     0.002594204f,   0.0020126554f, 0.0015900409f,  0.0012762798f,  0.0010377141f,  0.00071294716f,
     0.00050971645f, 0.0003764434f, 0.00028560215f, 0.00022164505f, 0.00017536116f, 0.0001410673f,
     0.24996348f,    0.20548059f,   0.17006609f,    0.14167574f,    0.118764155f,   0.10015484f,
     0.08494605f,    0.072442085f},
    {-0.024717532f,   -0.017297637f,   -0.012347731f,   -0.008977441f,   -0.0066385875f,
     -0.0049864845f,  -0.0038000655f,  -0.002934875f,   -0.0022544737f,  -0.0014290969f,
     -0.000941805f,   -0.00064188224f, -0.0004504359f,  -0.0003242596f,  -0.00023872018f,
     -0.0001792611f,  -0.0001341809f,  -8.232675e-05f,  -5.3100415e-05f, -3.568816e-05f,
     -2.4824398e-05f, -1.7777384e-05f, -1.3051901e-05f, -9.791178e-06f,  -0.13215655f,
     -0.104891874f,   -0.083837435f,   -0.06746377f,    -0.054643065f,   -0.0445378f,
     -0.03652174f,    -0.030123496f},
    {0.0075065116f,  0.0050028446f,  0.003403335f,   0.0023598995f,  0.0016657611f,   0.0011954416f,
     0.0008712522f,  0.00064416515f, 0.00042084826f, 0.0002478259f,  0.0001522063f,   9.698066e-05f,
     6.3819505e-05f, 4.3209577e-05f, 3.0002207e-05f, 2.1304291e-05f, 1.32716295e-05f, 7.451686e-06f,
     4.4262383e-06f, 2.7550302e-06f, 1.7836853e-06f, 1.194207e-06f,  8.229745e-07f,   5.815648e-07f,
     0.05479405f,    0.04230399f,    0.032892164f,   0.025749646f,   0.02029195f,     0.01609376f,
     0.01284345f,    0.010311153f}};

template <class D, class V>
HWY_INLINE V scaled_tail(D d, V u) {
  const hn::RebindToUnsigned<D> du;
  const V one = hn::Set(d, 1.0f);
  const auto bits = hn::BitCast(du, hn::Add(u, one));
  const auto piece = hn::ShiftRight<20>(bits);  // a look sees its last five bits
  const V begin = hn::Sub(hn::BitCast(d, hn::And(bits, hn::Set(du, 0xfff00000u))), one);
  const V t = hn::Sub(u, begin);
  const auto coefficient = [&](int power) HWY_ATTR {
    return V{_mm512_permutex2var_ps(_mm512_load_ps(kTail[power]), piece.raw,
                                    _mm512_load_ps(kTail[power] + 16))};
  };
  V p = coefficient(4);
  for (int k = 3; k >= 0; --k) p = hn::MulAdd(p, t, coefficient(k));
  return p;
}
#else
template <class D, class V>
HWY_INLINE V scaled_tail(D d, V u) {
  // Times (u + 3) in s = (u - 3) / (u + 3), u <= 14.5; relative error 5.2e-8.
  const V three = hn::Set(d, 3.0f);
  const V inverse = reciprocal(d, hn::Add(u, three));
  const V s = hn::Mul(hn::Sub(u, three), inverse);
  const V p = polynomial(d, s, -0.00026299022f, -0.0008977558f, 0.0010747324f, 0.006920008f,
                         -0.010480093f, -0.047255285f, 0.2300194f, -0.5093323f, 0.72908366f);
  return hn::Mul(p, inverse);
}
#endif

// The normal distribution at u in [0, kGaussEnd] (in f32 both are 0 from 13.3 on): its tail beyond
// u, 1/2 erfc(u / sqrt 2), with small relative error, and e^(-u^2 / 2).
template <class D>
inline constexpr double kGaussEnd = kIsF32<D> ? 14.5 : 40.0;
template <class V>
struct Gauss {
  V tail;
  V exp;
};
template <class D, class V>
HWY_INLINE Gauss<V> gauss(D d, V u) {
  if constexpr (kIsF32<D>) {
    const V minus_half = hn::Mul(u, hn::Set(d, -0.5f));
    const V x = hn::Mul(u, minus_half);  // rounded; below, the exact product is used
    const V e = exp_normal(d, x, [&](V n) HWY_ATTR {
#if HWY_NATIVE_FMA
      const V r = hn::MulSub(u, minus_half, hn::Mul(n, hn::Set(d, kStep.high)));
      return hn::NegMulAdd(n, hn::Set(d, kStep.low), r);
#else
      // Without a fused product: u^2 = square + left, exactly.
      const hn::RebindToUnsigned<D> du;
      const V upper = hn::BitCast(d, hn::And(hn::BitCast(du, u), hn::Set(du, 0xfffff000u)));
      const V square = hn::Mul(u, u);
      const V left = hn::Add(hn::Sub(hn::Mul(upper, upper), square),
                             hn::Mul(hn::Sub(u, upper), hn::Add(u, upper)));
      return hn::MulAdd(left, hn::Set(d, -0.5f), reduced(d, x, n, kStep));
#endif
    });
    const V exp = hn::IfThenZeroElse(hn::Lt(x, set(d, kExpLow)), e);
    return {hn::Mul(scaled_tail(d, u), exp), exp};
  } else {
    return {lane_by_lane(d, u, [](double v) { return 0.5 * std::erfc(v / std::sqrt(2.0)); }),
            lane_by_lane(d, u, [](double v) { return std::exp(-0.5 * v * v); })};
  }
}

template <class D, class V>
HWY_INLINE V erf(D d, V x) {
  if constexpr (kIsF32<D>) {
    const V one = hn::Set(d, 1.0f);
    const V u = at_most(d, hn::Abs(hn::Mul(x, hn::Set(d, 1.41421356f))), kGaussEnd<D>);
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
