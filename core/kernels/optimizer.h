// One pass over flat weights, gradients and moments: the updates of the optimizers, the norm of the
// gradient, and averages. f32 and f64.
#pragma once

#include <cstdint>
#include <span>

namespace norma::kernels {

// Elements begin..end-1 of the flat buffers, all with the same setting. Both ends are multiples of
// 64 bytes; see Note [Flat buffers] in core/flat.h.
struct Segment {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int32_t setting = 0;
};
using Segments = std::span<const Segment>;

// In all updates g is grad * grad_scale (clipping), plus l2 * w where there is an L2 penalty.

// b <- momentum b + gradient_part g;  d = g + momentum b (nesterov) or b;  w <- w - lr d.
// Without a buffer d = g.
struct SgdSetting {
  double lr, l2, momentum, gradient_part;
  bool nesterov;
};

// m <- m + (1 - beta1)(g - m);  v <- beta2 v + square_part g^2;
// w <- keep w - step_size m / (sqrt(v) root_scale + eps), without the quotient unless `adaptive`.
// With `v_max` (AMSGrad) v_max <- max(v_max, v) stands below the root.
struct AdamSetting {
  double keep, l2, beta1, beta2, square_part, step_size, root_scale, eps;
  bool adaptive;
};

// v <- alpha v + (1 - alpha) g^2;  with a mean a <- a + (1 - alpha)(g - a) and v - a^2 below the
// root;  d = g / (sqrt(v) + eps);  with a buffer b <- momentum b + d and d = b;  w <- w - lr d.
struct RmspropSetting {
  double lr, l2, alpha, momentum, eps;
};

// s <- s + g^2;  w <- w - lr g / (sqrt(s) + eps).
struct AdagradSetting {
  double lr, l2, eps;
};

// w <- keep w - lr sign(m + (1 - beta1)(g - m));  m <- m + (1 - beta2)(g - m);  sign(0) = 0.
struct LionSetting {
  double lr, keep, beta1, beta2;
};

// T is float or double. Pointers to buffers that an optimizer does not have are null.
template <class T>
void sgd_update(Segments segments, std::span<const SgdSetting> settings, double grad_scale,
                const T* grad, T* buffer, T* w);
template <class T>
void adam_update(Segments segments, std::span<const AdamSetting> settings, double grad_scale,
                 const T* grad, T* m, T* v, T* v_max, T* w);
template <class T>
void rmsprop_update(Segments segments, std::span<const RmspropSetting> settings, double grad_scale,
                    const T* grad, T* v, T* mean, T* buffer, T* w);
template <class T>
void adagrad_update(Segments segments, std::span<const AdagradSetting> settings, double grad_scale,
                    const T* grad, T* sum, T* w);
template <class T>
void lion_update(Segments segments, std::span<const LionSetting> settings, double grad_scale,
                 const T* grad, T* m, T* w);

// sum over the segments of (x / unit)^2, in f64; the order of the sum depends on the segments
// alone.
template <class T>
[[nodiscard]] double sum_of_squares(Segments segments, const T* x, double unit);
// The largest |x|; NaN if there is one.
template <class T>
[[nodiscard]] double max_abs(Segments segments, const T* x);
// x <- clamp(x * scale, -limit, limit); infinity for no limit. A NaN stays.
template <class T>
void scale_and_clamp(Segments segments, double scale, double limit, T* x);
// y <- y + (1 - decay)(x - y): an exponential moving average.
template <class T>
void average_update(Segments segments, double decay, const T* x, T* y);

}  // namespace norma::kernels
