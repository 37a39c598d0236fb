#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/pointwise.cpp"
#include "hwy/foreach_target.h"  // must come before the vector headers
//
#include "core/kernels/pointwise.h"
#include "core/kernels/vector_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace norma::kernels::HWY_NAMESPACE {
namespace {

struct Add {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::Add(a, b);
  }
};
struct Sub {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::Sub(a, b);
  }
};
struct Mul {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::Mul(a, b);
  }
};
struct Div {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::Div(a, b);
  }
};
// A comparison with NaN is false, so b is taken if it is one; a is asked for by itself.
struct Maximum {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b);
  }
};
struct Minimum {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(a)), a, b);
  }
};
struct ShareMax {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V a, V b) const {
    const V tie = hn::IfThenElseZero(hn::Eq(a, b), hn::Set(d, 0.5f));
    return hn::IfThenElse(hn::Gt(a, b), hn::Set(d, 1.0f), tie);
  }
};

// for (r < rows) for (c < cols) y[r][c] = f(a[r * rs0 + c * cs0], b[r * rs1 + c * cs1]);
template <class T, class F>
HWY_INLINE void binary_slab(const Slab& s, const T* a, const T* b, T* y, const F& f) {
  const hn::ScalableTag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto cols = static_cast<std::size_t>(s.cols);
  for (std::int64_t r = 0; r < s.rows; ++r) {
    const T* ar = a + s.in[0] + r * s.row_stride[0];
    const T* br = b + s.in[1] + r * s.row_stride[1];
    T* yr = y + s.out + r * s.cols;
    std::size_t i = 0;
    if (s.col_stride[0] == 1 && s.col_stride[1] == 1) {
      map(ar, br, yr, cols, f);
    } else if (s.col_stride[0] == 1) {
      const auto vb = hn::Set(d, *br);
      for (; i + lanes <= cols; i += lanes) hn::StoreU(f(d, hn::LoadU(d, ar + i), vb), d, yr + i);
      if (i < cols) StoreTail(f(d, LoadTail(d, ar + i, cols - i), vb), d, yr + i, cols - i);
    } else if (s.col_stride[1] == 1) {
      const auto va = hn::Set(d, *ar);
      for (; i + lanes <= cols; i += lanes) hn::StoreU(f(d, va, hn::LoadU(d, br + i)), d, yr + i);
      if (i < cols) StoreTail(f(d, va, LoadTail(d, br + i, cols - i)), d, yr + i, cols - i);
    } else {
      // Both constant along the row, which then has one element.
      const auto v = f(d, hn::Set(d, *ar), hn::Set(d, *br));
      for (; i < cols; ++i) yr[i] = hn::GetLane(v);
    }
  }
}

template <class T>
HWY_INLINE void binary_any(Binary op, const Slab& s, const T* a, const T* b, T* y) {
  switch (op) {
    case Binary::add:
      return binary_slab(s, a, b, y, Add());
    case Binary::sub:
      return binary_slab(s, a, b, y, Sub());
    case Binary::mul:
      return binary_slab(s, a, b, y, Mul());
    case Binary::div:
      return binary_slab(s, a, b, y, Div());
    case Binary::maximum:
      return binary_slab(s, a, b, y, Maximum());
    case Binary::minimum:
      return binary_slab(s, a, b, y, Minimum());
    case Binary::share_max:
      return binary_slab(s, a, b, y, ShareMax());
  }
}
void binary_f32(Binary op, const Slab& s, const float* a, const float* b, float* y) {
  binary_any(op, s, a, b, y);
}
void binary_f64(Binary op, const Slab& s, const double* a, const double* b, double* y) {
  binary_any(op, s, a, b, y);
}

struct AddScaled {
  double a;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x, V y) const {
    return hn::MulAdd(hn::Set(d, static_cast<hn::TFromD<D>>(a)), x, y);
  }
};
struct Scale {
  double a;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::Mul(hn::Set(d, static_cast<hn::TFromD<D>>(a)), x);
  }
};

void add_f32(float* y, const float* x, std::size_t n) { map(y, x, y, n, Add()); }
void add_f64(double* y, const double* x, std::size_t n) { map(y, x, y, n, Add()); }
void axpy_f32(float a, const float* x, float* y, std::size_t n) { map(x, y, y, n, AddScaled{a}); }
void axpy_f64(double a, const double* x, double* y, std::size_t n) {
  map(x, y, y, n, AddScaled{a});
}
void scale_f32(float a, float* y, std::size_t n) { map(y, y, n, Scale{a}); }
void scale_f64(double a, double* y, std::size_t n) { map(y, y, n, Scale{a}); }

}  // namespace
}  // namespace norma::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <cstring>

#include "core/parallel.h"

namespace norma::kernels {

HWY_EXPORT(binary_f32);
HWY_EXPORT(binary_f64);
HWY_EXPORT(add_f32);
HWY_EXPORT(add_f64);
HWY_EXPORT(axpy_f32);
HWY_EXPORT(axpy_f64);
HWY_EXPORT(scale_f32);
HWY_EXPORT(scale_f64);

namespace {

// Calls f(first, count) for chunks of n elements.
template <class F>
void chunks(std::int64_t n, F&& f) {
  parallel_for(n, kPointwiseGrain, [&](std::int64_t begin, std::int64_t end) {
    f(begin, static_cast<std::size_t>(end - begin));
  });
}

template <class T>
void add_half(T* y, const T* x, std::int64_t n) {
  parallel_for(n, kPointwiseGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      y[i] = T(static_cast<float>(y[i]) + static_cast<float>(x[i]));
    }
  });
}

}  // namespace

void binary(Binary op, const BroadcastPlan& plan, const float* a, const float* b, float* y) {
  for_each_slab(plan, [&](const Slab& s) { HWY_DYNAMIC_DISPATCH(binary_f32)(op, s, a, b, y); });
}
void binary(Binary op, const BroadcastPlan& plan, const double* a, const double* b, double* y) {
  for_each_slab(plan, [&](const Slab& s) { HWY_DYNAMIC_DISPATCH(binary_f64)(op, s, a, b, y); });
}

void add_inplace(float* y, const float* x, std::int64_t n) {
  chunks(n, [&](std::int64_t b, std::size_t c) { HWY_DYNAMIC_DISPATCH(add_f32)(y + b, x + b, c); });
}
void add_inplace(double* y, const double* x, std::int64_t n) {
  chunks(n, [&](std::int64_t b, std::size_t c) { HWY_DYNAMIC_DISPATCH(add_f64)(y + b, x + b, c); });
}
void add_inplace(bf16* y, const bf16* x, std::int64_t n) { add_half(y, x, n); }
void add_inplace(f16* y, const f16* x, std::int64_t n) { add_half(y, x, n); }

void axpy(float a, const float* x, float* y, std::int64_t n) {
  chunks(n, [&](std::int64_t b, std::size_t c) {
    HWY_DYNAMIC_DISPATCH(axpy_f32)(a, x + b, y + b, c);
  });
}
void axpy(double a, const double* x, double* y, std::int64_t n) {
  chunks(n, [&](std::int64_t b, std::size_t c) {
    HWY_DYNAMIC_DISPATCH(axpy_f64)(a, x + b, y + b, c);
  });
}
void scale(float a, float* y, std::int64_t n) {
  chunks(n, [&](std::int64_t b, std::size_t c) { HWY_DYNAMIC_DISPATCH(scale_f32)(a, y + b, c); });
}
void scale(double a, double* y, std::int64_t n) {
  chunks(n, [&](std::int64_t b, std::size_t c) { HWY_DYNAMIC_DISPATCH(scale_f64)(a, y + b, c); });
}

template <class T>
void fill(T value, T* y, std::int64_t n) {
  parallel_for(n, kPointwiseGrain,
               [&](std::int64_t begin, std::int64_t end) { std::fill(y + begin, y + end, value); });
}
#define NORMA_INSTANTIATE(T) template void fill(T value, T* y, std::int64_t n);
NORMA_INSTANTIATE(float)
NORMA_INSTANTIATE(double)
NORMA_INSTANTIATE(bf16)
NORMA_INSTANTIATE(f16)
NORMA_INSTANTIATE(std::int32_t)
NORMA_INSTANTIATE(std::int64_t)
NORMA_INSTANTIATE(std::uint8_t)
#undef NORMA_INSTANTIATE

void copy_bytes(const void* x, void* y, std::int64_t bytes) {
  parallel_for(bytes, kPointwiseGrain * 8, [&](std::int64_t begin, std::int64_t end) {
    std::memcpy(static_cast<char*>(y) + begin, static_cast<const char*>(x) + begin,
                static_cast<std::size_t>(end - begin));
  });
}

}  // namespace norma::kernels
#endif  // HWY_ONCE
