#include "core/kernels/optimizer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/optimizer.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace norma::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Every piece is a multiple of 64 bytes long, so that no loop has a tail.
template <class T>
using Tag = hn::CappedTag<T, 64 / sizeof(T)>;

template <class T>
void sgd(const SgdSetting& s, double grad_scale, std::int64_t n, const T* HWY_RESTRICT grad,
         T* HWY_RESTRICT buffer, T* HWY_RESTRICT w) {
  const Tag<T> d;
  const auto scale = hn::Set(d, static_cast<T>(grad_scale));
  const auto lr = hn::Set(d, static_cast<T>(s.lr));
  const auto l2 = hn::Set(d, static_cast<T>(s.l2));
  const auto momentum = hn::Set(d, static_cast<T>(s.momentum));
  const auto part = hn::Set(d, static_cast<T>(s.gradient_part));
  const std::int64_t step = static_cast<std::int64_t>(hn::Lanes(d));
  // b = momentum * b + part * g; w -= lr * (nesterov ? g + momentum * b : b)
  for (std::int64_t i = 0; i < n; i += step) {
    const auto weight = hn::Load(d, w + i);
    auto g = hn::MulAdd(l2, weight, hn::Mul(hn::Load(d, grad + i), scale));
    if (buffer) {
      const auto b = hn::MulAdd(momentum, hn::Load(d, buffer + i), hn::Mul(part, g));
      hn::Store(b, d, buffer + i);
      g = s.nesterov ? hn::MulAdd(momentum, b, g) : b;
    }
    hn::Store(hn::NegMulAdd(lr, g, weight), d, w + i);
  }
}

template <class T>
void adam(const AdamSetting& s, double grad_scale, std::int64_t n, const T* HWY_RESTRICT grad,
          T* HWY_RESTRICT m, T* HWY_RESTRICT v, T* HWY_RESTRICT v_max, T* HWY_RESTRICT w) {
  const Tag<T> d;
  const auto scale = hn::Set(d, static_cast<T>(grad_scale));
  const auto keep = hn::Set(d, static_cast<T>(s.keep));
  const auto l2 = hn::Set(d, static_cast<T>(s.l2));
  const auto one_minus_beta1 = hn::Set(d, static_cast<T>(1 - s.beta1));
  const auto beta2 = hn::Set(d, static_cast<T>(s.beta2));
  const auto part = hn::Set(d, static_cast<T>(s.square_part));
  const auto size = hn::Set(d, static_cast<T>(s.step_size));
  const auto root_scale = hn::Set(d, static_cast<T>(s.root_scale));
  const auto eps = hn::Set(d, static_cast<T>(s.eps));
  const std::int64_t step = static_cast<std::int64_t>(hn::Lanes(d));
  // m += (1-beta1) * (g - m); v = beta2*v + part*g*g; w = keep*w - size * m / (sqrt(v)*rs + eps)
  for (std::int64_t i = 0; i < n; i += step) {
    const auto weight = hn::Load(d, w + i);
    const auto g = hn::MulAdd(l2, weight, hn::Mul(hn::Load(d, grad + i), scale));
    const auto m0 = hn::Load(d, m + i);
    const auto m1 = hn::MulAdd(one_minus_beta1, hn::Sub(g, m0), m0);
    auto v1 = hn::MulAdd(beta2, hn::Load(d, v + i), hn::Mul(hn::Mul(part, g), g));
    hn::Store(m1, d, m + i);
    hn::Store(v1, d, v + i);
    if (v_max) {
      v1 = hn::Max(v1, hn::Load(d, v_max + i));
      hn::Store(v1, d, v_max + i);
    }
    auto update = hn::Mul(size, m1);
    if (s.adaptive) update = hn::Div(update, hn::MulAdd(hn::Sqrt(v1), root_scale, eps));
    hn::Store(hn::MulSub(keep, weight, update), d, w + i);
  }
}

template <class T>
void rmsprop(const RmspropSetting& s, double grad_scale, std::int64_t n, const T* HWY_RESTRICT grad,
             T* HWY_RESTRICT v, T* HWY_RESTRICT mean, T* HWY_RESTRICT buffer, T* HWY_RESTRICT w) {
  const Tag<T> d;
  const auto scale = hn::Set(d, static_cast<T>(grad_scale));
  const auto lr = hn::Set(d, static_cast<T>(s.lr));
  const auto l2 = hn::Set(d, static_cast<T>(s.l2));
  const auto alpha = hn::Set(d, static_cast<T>(s.alpha));
  const auto one_minus_alpha = hn::Set(d, static_cast<T>(1 - s.alpha));
  const auto momentum = hn::Set(d, static_cast<T>(s.momentum));
  const auto eps = hn::Set(d, static_cast<T>(s.eps));
  const std::int64_t step = static_cast<std::int64_t>(hn::Lanes(d));
  // v = alpha*v + (1-alpha)*g*g; w -= lr * g / (sqrt(v) + eps)
  for (std::int64_t i = 0; i < n; i += step) {
    const auto weight = hn::Load(d, w + i);
    const auto g = hn::MulAdd(l2, weight, hn::Mul(hn::Load(d, grad + i), scale));
    auto below = hn::MulAdd(alpha, hn::Load(d, v + i), hn::Mul(hn::Mul(one_minus_alpha, g), g));
    hn::Store(below, d, v + i);
    if (mean) {
      const auto a0 = hn::Load(d, mean + i);
      const auto a = hn::MulAdd(one_minus_alpha, hn::Sub(g, a0), a0);
      hn::Store(a, d, mean + i);
      // A variance: rounding may take it below zero, where the root has no value.
      below = hn::Max(hn::NegMulAdd(a, a, below), hn::Zero(d));
    }
    auto update = hn::Div(g, hn::Add(hn::Sqrt(below), eps));
    if (buffer) {
      update = hn::MulAdd(momentum, hn::Load(d, buffer + i), update);
      hn::Store(update, d, buffer + i);
    }
    hn::Store(hn::NegMulAdd(lr, update, weight), d, w + i);
  }
}

template <class T>
void adagrad(const AdagradSetting& s, double grad_scale, std::int64_t n, const T* HWY_RESTRICT grad,
             T* HWY_RESTRICT sum, T* HWY_RESTRICT w) {
  const Tag<T> d;
  const auto scale = hn::Set(d, static_cast<T>(grad_scale));
  const auto lr = hn::Set(d, static_cast<T>(s.lr));
  const auto l2 = hn::Set(d, static_cast<T>(s.l2));
  const auto eps = hn::Set(d, static_cast<T>(s.eps));
  const std::int64_t step = static_cast<std::int64_t>(hn::Lanes(d));
  // sum += g*g; w -= lr * g / (sqrt(sum) + eps)
  for (std::int64_t i = 0; i < n; i += step) {
    const auto weight = hn::Load(d, w + i);
    const auto g = hn::MulAdd(l2, weight, hn::Mul(hn::Load(d, grad + i), scale));
    const auto total = hn::MulAdd(g, g, hn::Load(d, sum + i));
    hn::Store(total, d, sum + i);
    const auto update = hn::Div(g, hn::Add(hn::Sqrt(total), eps));
    hn::Store(hn::NegMulAdd(lr, update, weight), d, w + i);
  }
}

template <class T>
void lion(const LionSetting& s, double grad_scale, std::int64_t n, const T* HWY_RESTRICT grad,
          T* HWY_RESTRICT m, T* HWY_RESTRICT w) {
  const Tag<T> d;
  const auto scale = hn::Set(d, static_cast<T>(grad_scale));
  const auto lr = hn::Set(d, static_cast<T>(s.lr));
  const auto keep = hn::Set(d, static_cast<T>(s.keep));
  const auto one_minus_beta1 = hn::Set(d, static_cast<T>(1 - s.beta1));
  const auto one_minus_beta2 = hn::Set(d, static_cast<T>(1 - s.beta2));
  const auto zero = hn::Zero(d);
  const std::int64_t step = static_cast<std::int64_t>(hn::Lanes(d));
  // w = keep*w - lr * sign(m + (1-beta1)*(g-m)); m += (1-beta2) * (g-m)
  for (std::int64_t i = 0; i < n; i += step) {
    const auto g = hn::Mul(hn::Load(d, grad + i), scale);
    const auto m0 = hn::Load(d, m + i);
    const auto difference = hn::Sub(g, m0);
    const auto blend = hn::MulAdd(one_minus_beta1, difference, m0);
    const auto size = hn::IfThenElse(hn::Eq(blend, zero), zero, hn::CopySign(lr, blend));
    hn::Store(hn::MulSub(keep, hn::Load(d, w + i), size), d, w + i);
    hn::Store(hn::MulAdd(one_minus_beta2, difference, m0), d, m + i);
  }
}

template <class T>
double squares(std::int64_t n, const T* HWY_RESTRICT x, double inverse_unit) {
  const hn::CappedTag<double, 8> d;
  const hn::Rebind<T, decltype(d)> narrow;
  const std::int64_t step = static_cast<std::int64_t>(hn::Lanes(d));
  const auto unit = hn::Set(d, inverse_unit);
  const auto load = [&](std::int64_t i) HWY_ATTR {
    if constexpr (sizeof(T) == 4) {
      return hn::Mul(hn::PromoteTo(d, hn::Load(narrow, x + i)), unit);
    } else {
      return hn::Mul(hn::Load(d, x + i), unit);
    }
  };
  // sum += x[i] * x[i], in two chains that do not wait for each other
  auto even = hn::Zero(d), odd = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + 2 * step <= n; i += 2 * step) {
    const auto a = load(i), b = load(i + step);
    even = hn::MulAdd(a, a, even);
    odd = hn::MulAdd(b, b, odd);
  }
  if (i < n) {
    const auto a = load(i);
    even = hn::MulAdd(a, a, even);
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd)));
}

template <class T>
void clamp(std::int64_t n, double factor, double limit, T* HWY_RESTRICT x) {
  const Tag<T> d;
  const auto scale = hn::Set(d, static_cast<T>(factor));
  const auto high = hn::Set(d, static_cast<T>(limit));
  const auto low = hn::Neg(high);
  const std::int64_t step = static_cast<std::int64_t>(hn::Lanes(d));
  // x = min(max(x * factor, -limit), limit)
  for (std::int64_t i = 0; i < n; i += step) {
    const auto v = hn::Mul(hn::Load(d, x + i), scale);
    hn::Store(hn::IfThenElse(hn::IsNaN(v), v, hn::Min(hn::Max(v, low), high)), d, x + i);
  }
}

template <class T>
void average(std::int64_t n, double decay, const T* HWY_RESTRICT x, T* HWY_RESTRICT y) {
  const Tag<T> d;
  const auto part = hn::Set(d, static_cast<T>(1 - decay));
  const std::int64_t step = static_cast<std::int64_t>(hn::Lanes(d));
  // y += (1 - decay) * (x - y)
  for (std::int64_t i = 0; i < n; i += step) {
    const auto old = hn::Load(d, y + i);
    hn::Store(hn::MulAdd(part, hn::Sub(hn::Load(d, x + i), old), old), d, y + i);
  }
}

// The dispatch table takes functions, not templates: one pair a kernel.
#define NORMA_PAIR(Result, name, kernel, Arguments32, Arguments64, Call) \
  Result name##_f32 Arguments32 { return kernel<float> Call; }           \
  Result name##_f64 Arguments64 { return kernel<double> Call; }

NORMA_PAIR(void, sgd, sgd,
           (const SgdSetting& s, double c, std::int64_t n, const float* g, float* b, float* w),
           (const SgdSetting& s, double c, std::int64_t n, const double* g, double* b, double* w),
           (s, c, n, g, b, w))
NORMA_PAIR(void, adam, adam,
           (const AdamSetting& s, double c, std::int64_t n, const float* g, float* m, float* v,
            float* x, float* w),
           (const AdamSetting& s, double c, std::int64_t n, const double* g, double* m, double* v,
            double* x, double* w),
           (s, c, n, g, m, v, x, w))
NORMA_PAIR(void, rmsprop, rmsprop,
           (const RmspropSetting& s, double c, std::int64_t n, const float* g, float* v, float* a,
            float* b, float* w),
           (const RmspropSetting& s, double c, std::int64_t n, const double* g, double* v,
            double* a, double* b, double* w),
           (s, c, n, g, v, a, b, w))
NORMA_PAIR(void, adagrad, adagrad,
           (const AdagradSetting& s, double c, std::int64_t n, const float* g, float* v, float* w),
           (const AdagradSetting& s, double c, std::int64_t n, const double* g, double* v,
            double* w),
           (s, c, n, g, v, w))
NORMA_PAIR(void, lion, lion,
           (const LionSetting& s, double c, std::int64_t n, const float* g, float* m, float* w),
           (const LionSetting& s, double c, std::int64_t n, const double* g, double* m, double* w),
           (s, c, n, g, m, w))
NORMA_PAIR(double, squares, squares, (std::int64_t n, const float* x, double u),
           (std::int64_t n, const double* x, double u), (n, x, u))
NORMA_PAIR(void, clamp, clamp, (std::int64_t n, double c, double limit, float* x),
           (std::int64_t n, double c, double limit, double* x), (n, c, limit, x))
NORMA_PAIR(void, average, average, (std::int64_t n, double c, const float* x, float* y),
           (std::int64_t n, double c, const double* x, double* y), (n, c, x, y))
#undef NORMA_PAIR

}  // namespace norma::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace norma::kernels {
namespace {

constexpr std::int64_t kGrain = 65536;  // elements of a chunk, at most; fewer stay on one thread

// Of n elements: an even number of chunks of whole lines of the cache.
std::int64_t grain_of(std::int64_t n) { return (even_grain(n, kGrain) + 63) / 64 * 64; }

// Where each segment begins if the segments are laid end to end, and the total.
std::vector<std::int64_t> starts(Segments segments) {
  std::vector<std::int64_t> sum(segments.size() + 1, 0);
  for (std::size_t k = 0; k < segments.size(); ++k) {
    sum[k + 1] = sum[k] + segments[k].end - segments[k].begin;
  }
  return sum;
}

// Calls f(setting, offset, n) for the pieces of the segments within [begin, end) of the layout
// that `sum` describes.
template <class F>
void for_pieces(Segments segments, const std::vector<std::int64_t>& sum, std::int64_t begin,
                std::int64_t end, F&& f) {
  auto k = static_cast<std::size_t>(std::upper_bound(sum.begin(), sum.end(), begin) - sum.begin());
  for (--k; k < segments.size() && sum[k] < end; ++k) {
    const std::int64_t from = std::max(begin, sum[k]), to = std::min(end, sum[k + 1]);
    if (from < to) {
      f(static_cast<std::size_t>(segments[k].setting), segments[k].begin + from - sum[k],
        to - from);
    }
  }
}

// The same over everything, in parallel. See Note [Fixed chunks].
template <class F>
void for_all(Segments segments, F&& f) {
  const std::vector<std::int64_t> sum = starts(segments);
  parallel_for(sum.back(), grain_of(sum.back()), [&](std::int64_t begin, std::int64_t end) {
    for_pieces(segments, sum, begin, end, f);
  });
}

template <class T>
T* at(T* p, std::int64_t offset) {
  return p ? p + offset : nullptr;
}

}  // namespace

// Both element types of a kernel, and the one for T.
#define NORMA_EXPORT(name) \
  HWY_EXPORT(name##_f32);  \
  HWY_EXPORT(name##_f64);
#define NORMA_KERNEL(name, T)                   \
  [] {                                          \
    if constexpr (sizeof(T) == sizeof(float)) { \
      return HWY_DYNAMIC_DISPATCH(name##_f32);  \
    } else {                                    \
      return HWY_DYNAMIC_DISPATCH(name##_f64);  \
    }                                           \
  }()

NORMA_EXPORT(sgd)
NORMA_EXPORT(adam)
NORMA_EXPORT(rmsprop)
NORMA_EXPORT(adagrad)
NORMA_EXPORT(lion)
NORMA_EXPORT(squares)
NORMA_EXPORT(clamp)
NORMA_EXPORT(average)

template <class T>
void sgd_update(Segments segments, std::span<const SgdSetting> settings, double grad_scale,
                const T* grad, T* buffer, T* w) {
  const auto run = NORMA_KERNEL(sgd, T);
  for_all(segments, [&](std::size_t s, std::int64_t o, std::int64_t n) {
    run(settings[s], grad_scale, n, grad + o, at(buffer, o), w + o);
  });
}

template <class T>
void adam_update(Segments segments, std::span<const AdamSetting> settings, double grad_scale,
                 const T* grad, T* m, T* v, T* v_max, T* w) {
  const auto run = NORMA_KERNEL(adam, T);
  for_all(segments, [&](std::size_t s, std::int64_t o, std::int64_t n) {
    run(settings[s], grad_scale, n, grad + o, m + o, v + o, at(v_max, o), w + o);
  });
}

template <class T>
void rmsprop_update(Segments segments, std::span<const RmspropSetting> settings, double grad_scale,
                    const T* grad, T* v, T* mean, T* buffer, T* w) {
  const auto run = NORMA_KERNEL(rmsprop, T);
  for_all(segments, [&](std::size_t s, std::int64_t o, std::int64_t n) {
    run(settings[s], grad_scale, n, grad + o, v + o, at(mean, o), at(buffer, o), w + o);
  });
}

template <class T>
void adagrad_update(Segments segments, std::span<const AdagradSetting> settings, double grad_scale,
                    const T* grad, T* sum, T* w) {
  const auto run = NORMA_KERNEL(adagrad, T);
  for_all(segments, [&](std::size_t s, std::int64_t o, std::int64_t n) {
    run(settings[s], grad_scale, n, grad + o, sum + o, w + o);
  });
}

template <class T>
void lion_update(Segments segments, std::span<const LionSetting> settings, double grad_scale,
                 const T* grad, T* m, T* w) {
  const auto run = NORMA_KERNEL(lion, T);
  for_all(segments, [&](std::size_t s, std::int64_t o, std::int64_t n) {
    run(settings[s], grad_scale, n, grad + o, m + o, w + o);
  });
}

template <class T>
double sum_of_squares(Segments segments, const T* x, double unit) {
  const auto run = NORMA_KERNEL(squares, T);
  const std::vector<std::int64_t> sum = starts(segments);
  return parallel_sum<double>(
      sum.back(), grain_of(sum.back()), [&](std::int64_t begin, std::int64_t end) {
        double total = 0;
        for_pieces(segments, sum, begin, end, [&](std::size_t, std::int64_t o, std::int64_t n) {
          total += run(n, x + o, 1 / unit);
        });
        return total;
      });
}

template <class T>
double max_abs(Segments segments, const T* x) {
  double most = 0;
  for (const Segment& s : segments) {
    for (std::int64_t i = s.begin; i < s.end; ++i) {
      const double a = std::fabs(static_cast<double>(x[i]));
      if (std::isnan(a)) return a;
      most = std::max(most, a);
    }
  }
  return most;
}

template <class T>
void scale_and_clamp(Segments segments, double scale, double limit, T* x) {
  const auto run = NORMA_KERNEL(clamp, T);
  for_all(segments,
          [&](std::size_t, std::int64_t o, std::int64_t n) { run(n, scale, limit, x + o); });
}

template <class T>
void average_update(Segments segments, double decay, const T* x, T* y) {
  const auto run = NORMA_KERNEL(average, T);
  for_all(segments,
          [&](std::size_t, std::int64_t o, std::int64_t n) { run(n, decay, x + o, y + o); });
}

#define NORMA_INSTANTIATE(T)                                                                      \
  template void sgd_update(Segments, std::span<const SgdSetting>, double, const T*, T*, T*);      \
  template void adam_update(Segments, std::span<const AdamSetting>, double, const T*, T*, T*, T*, \
                            T*);                                                                  \
  template void rmsprop_update(Segments, std::span<const RmspropSetting>, double, const T*, T*,   \
                               T*, T*, T*);                                                       \
  template void adagrad_update(Segments, std::span<const AdagradSetting>, double, const T*, T*,   \
                               T*);                                                               \
  template void lion_update(Segments, std::span<const LionSetting>, double, const T*, T*, T*);    \
  template double sum_of_squares(Segments, const T*, double);                                     \
  template double max_abs(Segments, const T*);                                                    \
  template void scale_and_clamp(Segments, double, double, T*);                                    \
  template void average_update(Segments, double, const T*, T*);
NORMA_INSTANTIATE(float)
NORMA_INSTANTIATE(double)

}  // namespace norma::kernels
#endif  // HWY_ONCE
