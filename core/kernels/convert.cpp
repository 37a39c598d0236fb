#include "core/kernels/convert.h"

#include <bit>
#include <limits>
#include <type_traits>

#include "core/kernels/pointwise.h"
#include "core/parallel.h"

namespace norma::kernels {
namespace {

template <class To, class From>
To convert_one(From x) {
  if constexpr (std::is_same_v<From, bf16>) {
    return convert_one<To>(std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16));
  } else if constexpr (std::is_same_v<From, f16>) {
    return convert_one<To>(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, bf16>) {
    // Both cases without a branch, so that the loop becomes vector code.
    const auto u = std::bit_cast<std::uint32_t>(static_cast<float>(x));
    const std::uint32_t rounded = (u + 0x7fffU + ((u >> 16) & 1U)) >> 16;
    const std::uint32_t nan = (u >> 16) | 0x40U;
    bf16 y;
    y.bits = static_cast<std::uint16_t>((u & 0x7fffffffU) > 0x7f800000U ? nan : rounded);
    return y;
  } else if constexpr (std::is_same_v<To, f16>) {
    return f16(static_cast<float>(x));
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

}  // namespace

void convert(DType from, const void* x, DType to, void* y, std::int64_t n) {
  if (from == to) return copy_bytes(x, y, n * size_of(from));
  dispatch_all(from, [&]<class From>() {
    dispatch_all(to, [&]<class To>() {
      const From* a = static_cast<const From*>(x);
      To* b = static_cast<To*>(y);
      parallel_for(n, kPointwiseGrain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) b[i] = convert_one<To>(a[i]);
      });
    });
  });
}

}  // namespace norma::kernels
