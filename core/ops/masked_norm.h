// BatchNorm and InstanceNorm over sequences of different lengths: padding has no part in the
// statistics.
#pragma once

#include "core/ops/norm_channels.h"
#include "core/ops/norm_rows.h"

namespace norma {

// As batch_norm of x (N, C), but mean, variance and `stats` are taken over the rows where mask is
// 1. The other rows are normalised with them, too; nothing but the loss says that they do not
// count. Where no row counts, `stats` stay as they are. Where running statistics are used, the mask
// changes nothing.
// Built from ops. Numerics: the mean in two steps, so that equal rows give exactly bias.
// Shapes: x (N, C), mask (N) u8, weight and bias (C) or undefined, stats (C).
// Throws: as batch_norm, and where one row alone counts.
[[nodiscard]] Tensor masked_batch_norm(const Tensor& x, const Tensor& mask, const Tensor& weight,
                                       const Tensor& bias, BatchNormOptions options,
                                       RunningStatistics stats = {});

// As instance_norm over T, in the same way; samples of which no token counts have no part in
// `stats`.
// Shapes: x (N, T, C), mask (N, T) u8, weight and bias (C) or undefined, stats (C).
// Throws: as instance_norm, and where one token alone of a sample counts.
[[nodiscard]] Tensor masked_instance_norm(const Tensor& x, const Tensor& mask, const Tensor& weight,
                                          const Tensor& bias, InstanceNormOptions options,
                                          RunningStatistics stats = {});

}  // namespace norma
