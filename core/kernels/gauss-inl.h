// Vector functions of the normal distribution: its tail, and erf. As in math-inl.h, f32 is computed
// in vectors, to a few units in the last place, and f64 calls <cmath> lane by lane.
#if defined(NORMA_GAUSS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMA_GAUSS_INL_H_
#undef NORMA_GAUSS_INL_H_
#else
#define NORMA_GAUSS_INL_H_
#endif

#include <cmath>

#include "core/kernels/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace norma::kernels::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

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

}  // namespace
}  // namespace norma::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // NORMA_GAUSS_INL_H_
