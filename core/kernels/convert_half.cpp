#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/convert_half.cpp"
#include "hwy/foreach_target.h"  // must come before the vector headers
//
#include <cstddef>

#include "core/kernels/convert_half.h"
#include "hwy/highway.h"

// Targets below AVX2 convert f16 without hardware; there the scalar code of dtype.h rounds rightly.
#undef NORMA_VECTOR_F16
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2  // a better target has a lower number
#define NORMA_VECTOR_F16 1
#else
#define NORMA_VECTOR_F16 0
#endif

HWY_BEFORE_NAMESPACE();
namespace norma::kernels::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// for (i < n) y[i] = bf16(x[i]);
void to_bf16(const float* x, bf16* y, std::size_t n) {
  std::size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<std::uint32_t> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<std::uint16_t, decltype(d)> dh;
  const std::size_t lanes = hn::Lanes(d);
  for (; i + lanes <= n; i += lanes) {
    const auto u = hn::LoadU(d, reinterpret_cast<const std::uint32_t*>(x + i));
    const auto upper = hn::ShiftRight<16>(u);
    // Adding just under one half, or one half where the last bit that stays is odd.
    const auto odd = hn::And(upper, hn::Set(d, 1u));
    const auto rounded = hn::ShiftRight<16>(hn::Add(u, hn::Add(odd, hn::Set(d, 0x7fffu))));
    const auto magnitude = hn::And(u, hn::Set(d, 0x7fffffffu));
    const auto nan = hn::Gt(hn::BitCast(di, magnitude), hn::Set(di, 0x7f800000));
    const auto quiet = hn::Or(upper, hn::Set(d, 0x40u));
    const auto bits = hn::IfThenElse(hn::RebindMask(d, nan), quiet, rounded);
    hn::StoreU(hn::DemoteTo(dh, hn::BitCast(di, bits)), dh,
               reinterpret_cast<std::uint16_t*>(y + i));
  }
#endif
  for (; i < n; ++i) y[i] = bf16(x[i]);
}

// for (i < n) y[i] = float(x[i]);
void from_bf16(const bf16* x, float* y, std::size_t n) {
  std::size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<std::uint32_t> d;
  const hn::Rebind<std::uint16_t, decltype(d)> dh;
  const std::size_t lanes = hn::Lanes(d);
  for (; i + lanes <= n; i += lanes) {
    const auto u = hn::LoadU(dh, reinterpret_cast<const std::uint16_t*>(x + i));
    hn::StoreU(hn::ShiftLeft<16>(hn::PromoteTo(d, u)), d, reinterpret_cast<std::uint32_t*>(y + i));
  }
#endif
  for (; i < n; ++i) y[i] = static_cast<float>(x[i]);
}

// for (i < n) y[i] = f16(x[i]);
void to_f16(const float* x, f16* y, std::size_t n) {
  std::size_t i = 0;
#if NORMA_VECTOR_F16
  const hn::ScalableTag<float> d;
  const hn::Rebind<hwy::float16_t, decltype(d)> dh;
  const hn::RebindToUnsigned<decltype(dh)> du;
  const std::size_t lanes = hn::Lanes(d);
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::BitCast(du, hn::DemoteTo(dh, hn::LoadU(d, x + i))), du,
               reinterpret_cast<std::uint16_t*>(y + i));
  }
#endif
  for (; i < n; ++i) y[i] = f16(x[i]);
}

// for (i < n) y[i] = float(x[i]);
void from_f16(const f16* x, float* y, std::size_t n) {
  std::size_t i = 0;
#if NORMA_VECTOR_F16
  const hn::ScalableTag<float> d;
  const hn::Rebind<hwy::float16_t, decltype(d)> dh;
  const hn::RebindToUnsigned<decltype(dh)> du;
  const std::size_t lanes = hn::Lanes(d);
  for (; i + lanes <= n; i += lanes) {
    const auto u = hn::LoadU(du, reinterpret_cast<const std::uint16_t*>(x + i));
    hn::StoreU(hn::PromoteTo(d, hn::BitCast(dh, u)), d, y + i);
  }
#endif
  for (; i < n; ++i) y[i] = static_cast<float>(x[i]);
}

}  // namespace
}  // namespace norma::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace norma::kernels {

HWY_EXPORT(to_bf16);
HWY_EXPORT(from_bf16);
HWY_EXPORT(to_f16);
HWY_EXPORT(from_f16);

void convert_half(const float* x, bf16* y, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(to_bf16)(x, y, static_cast<std::size_t>(n));
}
void convert_half(const float* x, f16* y, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(to_f16)(x, y, static_cast<std::size_t>(n));
}
void convert_half(const bf16* x, float* y, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(from_bf16)(x, y, static_cast<std::size_t>(n));
}
void convert_half(const f16* x, float* y, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(from_f16)(x, y, static_cast<std::size_t>(n));
}

}  // namespace norma::kernels
#endif  // HWY_ONCE
