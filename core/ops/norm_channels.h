// BatchNorm: the norm whose statistics are those of a channel over the whole batch. See Note [One
// formula] in norm_rows.h.
#pragma once

#include "core/autograd.h"
#include "core/ops/running_statistics.h"

namespace norma {

struct BatchNormOptions {
  double eps = 1e-5;
  bool training = true;
  Momentum momentum = 0.1;
};

// y = weight * (x - mean) / sqrt(var + eps) + bias for each channel.
//
// In training, and where no running statistics are kept, mean and (biased) var are the batch's own;
// training moves `stats` towards the mean and the unbiased variance, see Note [Momentum], and
// counts the batch. In evaluation they are those of `stats`, and a constant for the gradient.
// An empty batch gives an empty y and leaves `stats` alone.
// Shapes: x (N, C), (N, C, L) or (N, C, H, W); weight and bias (C) or undefined; stats (C), of x's
// type, or f32 if that is a half type.
// Numerics: as norm_rows. Saves: x, weight, bias, mean and reciprocal deviation of each channel.
// Throws: if a shape does not fit; in training over one value a channel (before `stats` are
// touched). In evaluation, where none are kept, one value becomes bias.
// Source: Ioffe, Szegedy 2015, arXiv 1502.03167.
[[nodiscard]] Tensor batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                BatchNormOptions options, RunningStatistics stats = {});

}  // namespace norma
