// One number in another element type.
#pragma once

#include <limits>
#include <type_traits>

#include "core/dtype.h"

namespace norma {

template <class T>
inline constexpr bool kIsHalf = std::is_same_v<T, bf16> || std::is_same_v<T, f16>;

// x in the type To. To a smaller floating type: nearest, ties to even (f64 to a half type goes
// through f32). To an integer: towards zero, saturated at its ends, NaN gives 0, where C++ leaves
// the result open.
template <class To, class From>
[[nodiscard]] To convert_value(From x) {
  if constexpr (kIsHalf<From>) {
    return convert_value<To>(static_cast<float>(x));
  } else if constexpr (kIsHalf<To>) {
    return To(static_cast<float>(x));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // The upper end is not always a value of From; its successor is, a power of two.
    constexpr From kLow = static_cast<From>(std::numeric_limits<To>::min());
    constexpr From kEnd = static_cast<From>(std::numeric_limits<To>::max() / 2 + 1) * 2;
    if (!(x >= kLow)) return x < kLow ? std::numeric_limits<To>::min() : To{0};
    if (x >= kEnd) return std::numeric_limits<To>::max();
    return static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace norma
