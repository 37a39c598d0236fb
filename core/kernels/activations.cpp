#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/activations.cpp"
#include "hwy/foreach_target.h"  // must come before the vector headers
//
#include "core/kernels/activations-inl.h"
#include "core/kernels/activations.h"
#include "core/kernels/vector_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace norma::kernels::HWY_NAMESPACE {
namespace {

// Calls f with the functions of an activation.
template <class F>
HWY_INLINE void with_activation(Activation a, double parameter, F f) {
  switch (a) {
    case Activation::relu:
      return f(Relu());
    case Activation::leaky_relu:
      return f(LeakyRelu{parameter});
    case Activation::gelu:
      return f(Gelu());
    case Activation::gelu_tanh:
      return f(GeluTanh());
    case Activation::silu:
      return f(Silu());
    case Activation::softplus:
      return f(Softplus());
    case Activation::elu:
      return f(Elu(parameter));
    case Activation::tanh:
      return f(TanhOutput());
    case Activation::sigmoid:
      return f(SigmoidOutput());
  }
}

template <class F>
struct Value {
  F f;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return f.value(d, x);
  }
};
template <class F>
struct Gradient {
  F f;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V s, V dy) const {
    return f.times_slope(d, s, dy);
  }
};
template <class F>
struct AddGradient {
  F f;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V s, V dy, V dx) const {
    return hn::Add(dx, f.times_slope(d, s, dy));
  }
};

template <class T>
void forward(Activation a, double parameter, const T* x, T* y, std::size_t n, bool past,
             std::size_t ahead) {
  with_activation(a, parameter,
                  [&]<class F>(F f) HWY_ATTR { map(x, y, n, Value<F>{f}, past, ahead); });
  FlushStores(past);
}
template <class T>
void backward(Activation a, double parameter, const T* s, const T* dy, bool accumulate, T* dx,
              std::size_t n, bool past, std::size_t ahead) {
  with_activation(a, parameter, [&]<class F>(F f) HWY_ATTR {
    if (accumulate) {
      map(s, dy, dx, dx, n, AddGradient<F>{f});
    } else {
      map(s, dy, dx, n, Gradient<F>{f}, past, ahead);
    }
  });
  FlushStores(past);
}

template <class F>
struct Gated {
  F f;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V g, V u) const {
    return hn::Mul(f.both(d, g).value, u);
  }
};

// for (i < n) { dg[i] (+)= dy[i] u[i] f'(g[i]); du[i] (+)= dy[i] f(g[i]); }
template <class T, class F>
HWY_INLINE void gated_backward(F f, const T* g, const T* u, const T* dy, Output<T> dg, Output<T> du,
                               std::size_t n) {
  const hn::ScalableTag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t i = 0; i < n; i += lanes) {
    const std::size_t count = n - i < lanes ? n - i : lanes;
    const bool whole = count == lanes;
    const auto vg = whole ? hn::LoadU(d, g + i) : LoadTail(d, g + i, count);
    const auto vdy = whole ? hn::LoadU(d, dy + i) : LoadTail(d, dy + i, count);
    const auto y = f.both(d, vg);
    const auto put = [&](Output<T> out, hn::Vec<decltype(d)> v) HWY_ATTR {
      if (whole) {
        if (out.accumulate) v = hn::Add(v, hn::LoadU(d, out.data + i));
        hn::StoreU(v, d, out.data + i);
      } else {
        if (out.accumulate) v = hn::Add(v, LoadTail(d, out.data + i, count));
        StoreTail(v, d, out.data + i, count);
      }
    };
    if (dg.data) {
      const auto vu = whole ? hn::LoadU(d, u + i) : LoadTail(d, u + i, count);
      put(dg, hn::Mul(hn::Mul(vdy, vu), y.slope));
    }
    if (du.data) put(du, hn::Mul(vdy, y.value));
  }
}

// for (i < n) { y[i] = f(x[i]); slope[i] = f'(x[i]); }
template <class T, class F>
HWY_INLINE void value_and_slope(F f, const T* x, T* y, T* slope, std::size_t n) {
  const hn::ScalableTag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto both = f.both(d, hn::LoadU(d, x + i));
    hn::StoreU(both.value, d, y + i);
    hn::StoreU(both.slope, d, slope + i);
  }
  if (i < n) {
    const auto both = f.both(d, LoadTail(d, x + i, n - i));
    StoreTail(both.value, d, y + i, n - i);
    StoreTail(both.slope, d, slope + i, n - i);
  }
}

template <class F>
HWY_INLINE void with_gate(Activation a, F f) {
  switch (a) {
    case Activation::relu:
      return f(Relu());
    case Activation::gelu:
      return f(Gelu());
    case Activation::gelu_tanh:
      return f(GeluTanh());
    default:
      return f(Silu());
  }
}
template <class T>
void rows_any(Activation a, const T* x, std::int64_t stride_x, T* y, std::int64_t stride_y,
              std::int64_t rows, std::size_t cols) {
  with_gate(a, [&]<class F>(F f) HWY_ATTR {
    for (std::int64_t r = 0; r < rows; ++r) {
      map(x + r * stride_x, y + r * stride_y, cols, Value<F>{f});
    }
  });
}
template <class T>
void with_slope_any(Activation a, const T* x, T* y, T* slope, std::size_t n) {
  with_gate(a, [&](auto f) HWY_ATTR { value_and_slope(f, x, y, slope, n); });
}
template <class T>
void gate_any(Activation a, const T* g, const T* u, T* y, std::size_t n) {
  with_gate(a, [&]<class F>(F f) HWY_ATTR { map(g, u, y, n, Gated<F>{f}); });
}
template <class T>
void gate_backward_any(Activation a, const T* g, const T* u, const T* dy, Output<T> dg,
                       Output<T> du, std::size_t n) {
  with_gate(a, [&](auto f) HWY_ATTR { gated_backward(f, g, u, dy, dg, du, n); });
}

void forward_f32(Activation a, double p, const float* x, float* y, std::size_t n, bool past,
                 std::size_t ahead) {
  forward(a, p, x, y, n, past, ahead);
}
void forward_f64(Activation a, double p, const double* x, double* y, std::size_t n, bool past,
                 std::size_t ahead) {
  forward(a, p, x, y, n, past, ahead);
}
void backward_f32(Activation a, double p, const float* s, const float* dy, bool accumulate,
                  float* dx, std::size_t n, bool past, std::size_t ahead) {
  backward(a, p, s, dy, accumulate, dx, n, past, ahead);
}
void backward_f64(Activation a, double p, const double* s, const double* dy, bool accumulate,
                  double* dx, std::size_t n, bool past, std::size_t ahead) {
  backward(a, p, s, dy, accumulate, dx, n, past, ahead);
}
void rows_f32(Activation a, const float* x, std::int64_t stride_x, float* y, std::int64_t stride_y,
              std::int64_t rows, std::size_t cols) {
  rows_any(a, x, stride_x, y, stride_y, rows, cols);
}
void rows_f64(Activation a, const double* x, std::int64_t stride_x, double* y,
              std::int64_t stride_y, std::int64_t rows, std::size_t cols) {
  rows_any(a, x, stride_x, y, stride_y, rows, cols);
}
void with_slope_f32(Activation a, const float* x, float* y, float* slope, std::size_t n) {
  with_slope_any(a, x, y, slope, n);
}
void with_slope_f64(Activation a, const double* x, double* y, double* slope, std::size_t n) {
  with_slope_any(a, x, y, slope, n);
}
void gate_f32(Activation a, const float* g, const float* u, float* y, std::size_t n) {
  gate_any(a, g, u, y, n);
}
void gate_f64(Activation a, const double* g, const double* u, double* y, std::size_t n) {
  gate_any(a, g, u, y, n);
}
void gate_backward_f32(Activation a, const float* g, const float* u, const float* dy,
                       Output<float> dg, Output<float> du, std::size_t n) {
  gate_backward_any(a, g, u, dy, dg, du, n);
}
void gate_backward_f64(Activation a, const double* g, const double* u, const double* dy,
                       Output<double> dg, Output<double> du, std::size_t n) {
  gate_backward_any(a, g, u, dy, dg, du, n);
}

}  // namespace
}  // namespace norma::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "core/kernels/past_cache.h"
#include "core/kernels/pointwise.h"
#include "core/parallel.h"

namespace norma::kernels {

HWY_EXPORT(forward_f32);
HWY_EXPORT(forward_f64);
HWY_EXPORT(backward_f32);
HWY_EXPORT(backward_f64);
HWY_EXPORT(rows_f32);
HWY_EXPORT(rows_f64);
HWY_EXPORT(with_slope_f32);
HWY_EXPORT(with_slope_f64);
HWY_EXPORT(gate_f32);
HWY_EXPORT(gate_f64);
HWY_EXPORT(gate_backward_f32);
HWY_EXPORT(gate_backward_f64);

namespace {

template <class F>
void chunks(std::int64_t n, F&& f) {
  parallel_for(n, kPointwiseGrain, [&](std::int64_t begin, std::int64_t end) {
    f(begin, static_cast<std::size_t>(end - begin));
  });
}

// past_cache() of a result that is written in chunks(), where `moved` elements move.
template <class T>
bool chunks_past_cache(const T* result, std::int64_t moved) {
  return past_cache(result, kPointwiseGrain, moved * static_cast<std::int64_t>(sizeof(T)));
}

// How far ahead operands are asked for, where `moved` elements come from memory rather than from a
// cache: further than a core foresees by itself, but a small part of a chunk.
template <class T>
std::size_t elements_ahead(std::int64_t moved) {
  constexpr std::size_t kBytes = 4096;
  return moved * static_cast<std::int64_t>(sizeof(T)) > last_cache_bytes() / 4 ? kBytes / sizeof(T)
                                                                               : 0;
}

template <class T>
Output<T> at(Output<T> out, std::int64_t offset) {
  return {out.data ? out.data + offset : nullptr, out.accumulate};
}

}  // namespace

void activate(Activation a, double p, const float* x, float* y, std::int64_t n) {
  const bool past = chunks_past_cache(y, 2 * n);
  const std::size_t ahead = elements_ahead<float>(2 * n);
  chunks(n, [&](std::int64_t b, std::size_t c) {
    HWY_DYNAMIC_DISPATCH(forward_f32)(a, p, x + b, y + b, c, past, ahead);
  });
}
void activate(Activation a, double p, const double* x, double* y, std::int64_t n) {
  const bool past = chunks_past_cache(y, 2 * n);
  const std::size_t ahead = elements_ahead<double>(2 * n);
  chunks(n, [&](std::int64_t b, std::size_t c) {
    HWY_DYNAMIC_DISPATCH(forward_f64)(a, p, x + b, y + b, c, past, ahead);
  });
}
void activate_rows(Activation a, const float* x, std::int64_t stride_x, float* y,
                   std::int64_t stride_y, std::int64_t rows, std::int64_t cols) {
  HWY_DYNAMIC_DISPATCH(rows_f32)
  (a, x, stride_x, y, stride_y, rows, static_cast<std::size_t>(cols));
}
void activate_rows(Activation a, const double* x, std::int64_t stride_x, double* y,
                   std::int64_t stride_y, std::int64_t rows, std::int64_t cols) {
  HWY_DYNAMIC_DISPATCH(rows_f64)
  (a, x, stride_x, y, stride_y, rows, static_cast<std::size_t>(cols));
}
void activate_with_slope(Activation a, const float* x, float* y, float* slope, std::int64_t n) {
  chunks(n, [&](std::int64_t b, std::size_t c) {
    HWY_DYNAMIC_DISPATCH(with_slope_f32)(a, x + b, y + b, slope + b, c);
  });
}
void activate_with_slope(Activation a, const double* x, double* y, double* slope, std::int64_t n) {
  chunks(n, [&](std::int64_t b, std::size_t c) {
    HWY_DYNAMIC_DISPATCH(with_slope_f64)(a, x + b, y + b, slope + b, c);
  });
}
void activate_backward(Activation a, double p, const float* s, const float* dy, bool accumulate,
                       float* dx, std::int64_t n) {
  const bool past = !accumulate && chunks_past_cache(dx, 3 * n);
  const std::size_t ahead = elements_ahead<float>(3 * n);
  chunks(n, [&](std::int64_t b, std::size_t c) {
    HWY_DYNAMIC_DISPATCH(backward_f32)
    (a, p, s + b, dy + b, accumulate, dx + b, c, past, ahead);
  });
}
void activate_backward(Activation a, double p, const double* s, const double* dy, bool accumulate,
                       double* dx, std::int64_t n) {
  const bool past = !accumulate && chunks_past_cache(dx, 3 * n);
  const std::size_t ahead = elements_ahead<double>(3 * n);
  chunks(n, [&](std::int64_t b, std::size_t c) {
    HWY_DYNAMIC_DISPATCH(backward_f64)
    (a, p, s + b, dy + b, accumulate, dx + b, c, past, ahead);
  });
}
void gate(Activation a, const float* g, const float* u, float* y, std::int64_t n) {
  chunks(n, [&](std::int64_t b, std::size_t c) {
    HWY_DYNAMIC_DISPATCH(gate_f32)(a, g + b, u + b, y + b, c);
  });
}
void gate(Activation a, const double* g, const double* u, double* y, std::int64_t n) {
  chunks(n, [&](std::int64_t b, std::size_t c) {
    HWY_DYNAMIC_DISPATCH(gate_f64)(a, g + b, u + b, y + b, c);
  });
}
void gate_backward(Activation a, const float* g, const float* u, const float* dy, Output<float> dg,
                   Output<float> du, std::int64_t n) {
  chunks(n, [&](std::int64_t b, std::size_t c) {
    HWY_DYNAMIC_DISPATCH(gate_backward_f32)(a, g + b, u + b, dy + b, at(dg, b), at(du, b), c);
  });
}
void gate_backward(Activation a, const double* g, const double* u, const double* dy,
                   Output<double> dg, Output<double> du, std::int64_t n) {
  chunks(n, [&](std::int64_t b, std::size_t c) {
    HWY_DYNAMIC_DISPATCH(gate_backward_f64)(a, g + b, u + b, dy + b, at(dg, b), at(du, b), c);
  });
}

}  // namespace norma::kernels
#endif  // HWY_ONCE
