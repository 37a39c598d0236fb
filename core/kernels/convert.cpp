#include "core/kernels/convert.h"

#include <algorithm>
#include <type_traits>

#include "core/convert_value.h"
#include "core/kernels/convert_half.h"
#include "core/kernels/pointwise.h"
#include "core/parallel.h"

namespace norma::kernels {
namespace {

// for (i < n) y[i] = x[i];
template <class From, class To>
void convert_range(const From* x, To* y, std::int64_t n) {
  if constexpr ((kIsHalf<From> && std::is_same_v<To, float>) ||
                (kIsHalf<To> && std::is_same_v<From, float>)) {
    convert_half(x, y, n);
  } else {
    for (std::int64_t i = 0; i < n; ++i) y[i] = convert_value<To>(x[i]);
  }
}

// In pieces that stay in the first-level cache.
template <class T>
void add_range(const T* a, const T* b, T* y, std::int64_t n) {
  constexpr std::int64_t kPiece = 1024;
  float x[kPiece], z[kPiece];
  for (std::int64_t i = 0; i < n; i += kPiece) {
    const std::int64_t m = std::min(kPiece, n - i);
    convert_half(a + i, x, m);
    convert_half(b + i, z, m);
    for (std::int64_t k = 0; k < m; ++k) x[k] += z[k];
    convert_half(x, y + i, m);
  }
}

}  // namespace

void add_halves(DType half, const void* a, const void* b, void* y, std::int64_t n) {
  const auto run = [&]<class T>(const T* p, const T* q, T* r) {
    parallel_for(n, kPointwiseGrain, [&](std::int64_t begin, std::int64_t end) {
      add_range(p + begin, q + begin, r + begin, end - begin);
    });
  };
  if (half == DType::bf16) {
    run(static_cast<const bf16*>(a), static_cast<const bf16*>(b), static_cast<bf16*>(y));
  } else {
    run(static_cast<const f16*>(a), static_cast<const f16*>(b), static_cast<f16*>(y));
  }
}

void convert(DType from, const void* x, DType to, void* y, std::int64_t n) {
  if (from == to) return copy_bytes(x, y, n * size_of(from));
  dispatch_all(from, [&]<class From>() {
    dispatch_all(to, [&]<class To>() {
      const From* a = static_cast<const From*>(x);
      To* b = static_cast<To*>(y);
      parallel_for(n, kPointwiseGrain, [&](std::int64_t begin, std::int64_t end) {
        convert_range(a + begin, b + begin, end - begin);
      });
    });
  });
}

}  // namespace norma::kernels
