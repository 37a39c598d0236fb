#include "core/kernels/compare.h"

#include <type_traits>

namespace norma::kernels {
namespace {

// Calls f(integral_constant<0 or 1>) so that the stride of the inner loop is known to the compiler.
template <class F>
void with_stride(std::int64_t stride, F&& f) {
  if (stride == 1) {
    f(std::integral_constant<std::int64_t, 1>());
  } else {
    f(std::integral_constant<std::int64_t, 0>());
  }
}

template <class T, class F>
void compare_any(const BroadcastPlan& plan, const T* a, const T* b, std::uint8_t* y, F f) {
  for_each_slab(plan, [&](const Slab& s) {
    with_stride(s.col_stride[0], [&](auto sa) {
      with_stride(s.col_stride[1], [&](auto sb) {
        for (std::int64_t r = 0; r < s.rows; ++r) {
          const T* ar = a + s.in[0] + r * s.row_stride[0];
          const T* br = b + s.in[1] + r * s.row_stride[1];
          std::uint8_t* yr = y + s.out + r * s.cols;
          for (std::int64_t i = 0; i < s.cols; ++i) yr[i] = f(ar[i * sa], br[i * sb]) ? 1 : 0;
        }
      });
    });
  });
}

template <class T>
void compare_typed(Comparison op, const BroadcastPlan& plan, const T* a, const T* b,
                   std::uint8_t* y) {
  switch (op) {
    case Comparison::eq:
      return compare_any(plan, a, b, y, [](T u, T v) { return u == v; });
    case Comparison::ne:
      return compare_any(plan, a, b, y, [](T u, T v) { return u != v; });
    case Comparison::lt:
      return compare_any(plan, a, b, y, [](T u, T v) { return u < v; });
    case Comparison::le:
      return compare_any(plan, a, b, y, [](T u, T v) { return u <= v; });
    case Comparison::gt:
      return compare_any(plan, a, b, y, [](T u, T v) { return u > v; });
    case Comparison::ge:
      return compare_any(plan, a, b, y, [](T u, T v) { return u >= v; });
  }
}

}  // namespace

void compare(Comparison op, const BroadcastPlan& plan, DType dtype, const void* a, const void* b,
             std::uint8_t* y) {
  dispatch_all(dtype, [&]<class T>() {
    if constexpr (std::is_arithmetic_v<T>) {
      compare_typed(op, plan, static_cast<const T*>(a), static_cast<const T*>(b), y);
    } else {
      throw Error::format("compare: expected no half type; got {}", name_of(dtype));
    }
  });
}

template <class T>
void select(const BroadcastPlan& plan, const std::uint8_t* condition, const T* a, const T* b,
            T* y) {
  for_each_slab(plan, [&](const Slab& s) {
    with_stride(s.col_stride[0], [&](auto sc) {
      with_stride(s.col_stride[1], [&](auto sa) {
        with_stride(s.col_stride[2], [&](auto sb) {
          for (std::int64_t r = 0; r < s.rows; ++r) {
            const std::uint8_t* cr = condition + s.in[0] + r * s.row_stride[0];
            const T* ar = a + s.in[1] + r * s.row_stride[1];
            const T* br = b + s.in[2] + r * s.row_stride[2];
            T* yr = y + s.out + r * s.cols;
            for (std::int64_t i = 0; i < s.cols; ++i) {
              yr[i] = cr[i * sc] != 0 ? ar[i * sa] : br[i * sb];
            }
          }
        });
      });
    });
  });
}

template void select(const BroadcastPlan&, const std::uint8_t*, const float*, const float*, float*);
template void select(const BroadcastPlan&, const std::uint8_t*, const double*, const double*,
                     double*);

}  // namespace norma::kernels
