// BatchNorm over sequences of different lengths: padding has no part in the statistics.
#pragma once

#include "core/ops/norm_channels.h"

namespace norma {

// As batch_norm of x (N, C), but mean, variance and `stats` are taken over the rows where mask is
// 1. The other rows are normalised with them, too; nothing but the loss says that they do not
// count. Where running statistics are used, the mask changes nothing.
// Built from ops. Numerics: the mean in two steps, so that equal rows give exactly bias.
// Shapes: x (N, C), mask (N) u8, weight and bias (C) or undefined, stats (C).
// Throws: as batch_norm, and where fewer than two rows count.
[[nodiscard]] Tensor masked_batch_norm(const Tensor& x, const Tensor& mask, const Tensor& weight,
                                       const Tensor& bias, BatchNormOptions options,
                                       RunningStatistics stats = {});

}  // namespace norma
