// Element types of tensors.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/error.h"

namespace norma {

enum class DType : std::uint8_t { f32, f64, bf16, f16, i32, i64, u8 };

// Brain float: the upper half of an f32. Conversion rounds to nearest, ties to even.
struct bf16 {
  std::uint16_t bits = 0;
  bf16() = default;
  explicit bf16(float x);
  explicit operator float() const;
};

// IEEE half precision. Conversion rounds to nearest, ties to even; subnormals are kept.
struct f16 {
  std::uint16_t bits = 0;
  f16() = default;
  explicit f16(float x);
  explicit operator float() const;
};

// Bytes of one element.
[[nodiscard]] std::int64_t size_of(DType dtype);
// "f32", "i64", ...: the names of the conformance format and of the configuration.
[[nodiscard]] std::string_view name_of(DType dtype);
// The inverse of name_of; throws Error naming the known ones.
[[nodiscard]] DType dtype_from_name(std::string_view name);
// f32 and f64: the types that kernels compute in.
[[nodiscard]] constexpr bool is_compute(DType d) { return d == DType::f32 || d == DType::f64; }
// bf16 and f16: storage types, computed in f32 and rounded once at the end.
[[nodiscard]] constexpr bool is_half(DType d) { return d == DType::bf16 || d == DType::f16; }
[[nodiscard]] constexpr bool is_floating(DType d) { return is_compute(d) || is_half(d); }

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct DTypeOf<bf16> {
  static constexpr DType value = DType::bf16;
};
template <>
struct DTypeOf<f16> {
  static constexpr DType value = DType::f16;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::i64;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::u8;
};
template <class T>
inline constexpr DType dtype_of = DTypeOf<T>::value;

// Calls f.template operator()<T>() with T = float or double; `op` names the caller in the error.
template <class F>
decltype(auto) dispatch_compute(DType dtype, const char* op, F&& f) {
  switch (dtype) {
    case DType::f32:
      return f.template operator()<float>();
    case DType::f64:
      return f.template operator()<double>();
    default:
      throw Error::format("{}: expected f32 or f64; got {}; convert with to(x, DType::f32)", op,
                          name_of(dtype));
  }
}

// Likewise over all seven types (for copies and conversions).
template <class F>
decltype(auto) dispatch_all(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32:
      return f.template operator()<float>();
    case DType::f64:
      return f.template operator()<double>();
    case DType::bf16:
      return f.template operator()<bf16>();
    case DType::f16:
      return f.template operator()<f16>();
    case DType::i32:
      return f.template operator()<std::int32_t>();
    case DType::i64:
      return f.template operator()<std::int64_t>();
    default:
      return f.template operator()<std::uint8_t>();
  }
}

}  // namespace norma
