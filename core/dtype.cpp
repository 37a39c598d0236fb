#include "core/dtype.h"

#include <bit>
#include <cmath>

namespace norma {
namespace {

constexpr std::string_view kNames[] = {"f32", "f64", "bf16", "f16", "i32", "i64", "u8"};
constexpr std::int64_t kSizes[] = {4, 8, 2, 2, 4, 8, 1};

}  // namespace

bf16::bf16(float x) {
  const std::uint32_t u = std::bit_cast<std::uint32_t>(x);
  if (x != x) {
    bits = static_cast<std::uint16_t>((u >> 16) | 0x40);  // keep a NaN a NaN
    return;
  }
  bits = static_cast<std::uint16_t>((u + 0x7fffU + ((u >> 16) & 1U)) >> 16);
}

bf16::operator float() const {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

f16::f16(float x) {
  const std::uint32_t u = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = (u >> 16) & 0x8000U;
  const std::uint32_t magnitude = u & 0x7fffffffU;
  std::uint32_t h;
  if (magnitude > 0x7f800000U) {
    h = 0x7e00U;  // NaN
  } else if (magnitude >= 0x477ff000U) {
    h = 0x7c00U;  // 65520 and more round to infinity
  } else if (magnitude < 0x38800000U) {
    // Subnormal: adding 0.5 puts the rounded value into the low bits of the sum.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    h = std::bit_cast<std::uint32_t>(shifted) - 0x3f000000U;
  } else {
    h = (magnitude - 0x38000000U + 0xfffU + ((magnitude >> 13) & 1U)) >> 13;
  }
  bits = static_cast<std::uint16_t>(sign | h);
}

f16::operator float() const {
  const std::uint32_t sign = (bits & 0x8000U) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fU;
  const std::uint32_t mantissa = bits & 0x3ffU;
  if (exponent == 0) {
    const float value = std::ldexp(static_cast<float>(mantissa), -24);
    return sign ? -value : value;
  }
  const std::uint32_t e = exponent == 31 ? 255U : exponent + 112U;
  return std::bit_cast<float>(sign | (e << 23) | (mantissa << 13));
}

std::int64_t size_of(DType dtype) { return kSizes[static_cast<int>(dtype)]; }

std::string_view name_of(DType dtype) { return kNames[static_cast<int>(dtype)]; }

DType dtype_from_name(std::string_view name) {
  for (int i = 0; i < 7; ++i) {
    if (kNames[i] == name) return static_cast<DType>(i);
  }
  throw Error::format("dtype: expected one of f32, f64, bf16, f16, i32, i64, u8; got \"{}\"", name);
}

}  // namespace norma
