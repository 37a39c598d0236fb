// Losses of predictions against targets of the same shape, as the mean over all elements. Both may
// want a gradient. Half types are computed in f32 and rounded once; sums run in f64. Throws Error
// for shapes or types that differ, and for empty tensors.
//
// Sources: torch.nn.functional.mse_loss, l1_loss, huber_loss, binary_cross_entropy_with_logits.
#pragma once

#include "core/autograd.h"

namespace norma {

// mean((x - t)^2).
[[nodiscard]] Tensor mse_loss(const Tensor& x, const Tensor& t);

// mean(|x - t|); the gradient is 0 where they are equal.
[[nodiscard]] Tensor mae_loss(const Tensor& x, const Tensor& t);

// The mean of 0.5 d^2 where |d| <= delta, and of delta (|d| - 0.5 delta) elsewhere, d = x - t.
// Throws Error unless delta > 0.
struct HuberOptions {
  double delta = 1.0;
};
[[nodiscard]] Tensor huber_loss(const Tensor& x, const Tensor& t, HuberOptions options = {});

// mean(log(1 + exp(x)) - x t), the cross-entropy of sigmoid(x) against probabilities t. It is
// computed as max(x, 0) - x t + log(1 + exp(-|x|)), which never overflows.
[[nodiscard]] Tensor bce_loss(const Tensor& x, const Tensor& t);

}  // namespace norma
