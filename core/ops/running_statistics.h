// Mean and variance of a channel over the batches so far: what a norm uses in evaluation.
#pragma once

#include <optional>

#include "core/tensor.h"

namespace norma {

// Buffers of a layer, changed in place by every training forward. All undefined: none are kept.
struct RunningStatistics {
  Tensor mean;     // (C), starts at 0
  Tensor var;      // (C), starts at 1; unbiased: divided by m - 1
  Tensor batches;  // () i64, starts at 0
  [[nodiscard]] bool kept() const { return mean.defined(); }
};

// For C channels: 0, 1 and 0.
[[nodiscard]] RunningStatistics make_running_statistics(std::int64_t channels,
                                                        DType dtype = DType::f32);

// Note [Momentum]. running = (1 - momentum) * running + momentum * batch, so momentum 0 keeps the
// old value. Without a momentum the weight is 1 / batches, which makes the plain average over all
// batches; that is why `batches` belongs to the state of a layer.
using Momentum = std::optional<double>;

// Throws Error naming `op` if the buffers are not (channels) of `dtype`.
void check_running_statistics(const char* op, const RunningStatistics& stats, std::int64_t channels,
                              DType dtype);
// Counts one more training batch and returns how many there were with it. While recomputing(), when
// a batch passes for the second time, neither this nor the next one changes anything.
std::int64_t count_batch(RunningStatistics& stats);
// stats.mean = (1 - weight) * stats.mean + weight * mean, and so for var (C; unbiased already).
void update_running_statistics(RunningStatistics& stats, const Tensor& mean, const Tensor& var,
                               double weight);

}  // namespace norma
