// Norms over contiguous runs.
//
// Note [One formula]. Every norm here and in norm_channels.h is
//
//   y = gamma * (x - mean) / sqrt(var + eps) + beta
//
// and differs in the axes that mean and var are taken over. With x (N, C, space):
//
// | norm          | mean and var over                     | one gamma and beta | where       |
// |---------------|---------------------------------------|--------------------|-------------|
// | batch_norm    | N and space, for each channel         | a channel          | channels    |
// | layer_norm    | the last axes, for each sample, token | an element         | rows        |
// | rms_norm      | as layer_norm; mean = 0, no beta      | an element         | rows        |
// | group_norm    | a group of channels and space         | a channel          | rows        |
// | instance_norm | space, for each sample and channel    | a channel          | rows        |
//
// In memory there are two geometries: "rows" reduce contiguous runs (this file), "channels" reduce
// values that lie apart (norm_channels.h).
//
// Numerics of all: var is biased and computed in two passes; eps is inside the root; the mean is
// exact for equal values, so that a constant run gives exactly beta; squares that leave the range
// of the type are summed scaled (rms_norm of [1e20, -1e20] is [1, -1]). bf16 and f16 are computed
// in f32 and rounded once; their weights may be f32 or of the type itself.
// Saves: x, weight, bias, and a mean and a reciprocal deviation for each run; not the normalised x.
#pragma once

#include "core/autograd.h"
#include "core/ops/running_statistics.h"

namespace norma {

// When x has a half type: the gain is applied in f32 and the product rounded (after_gain), or the
// normalised value is rounded, then multiplied in the type (before_gain: LLaMA, T5).
enum class GainCast : std::uint8_t { after_gain, before_gain };

// When x has a half type: everything in f32 and rounded once, or mean, deviation and every step
// between in that type, made of small ops that round each (and overflow f16 where a sum of squares
// is above 65504): what f32 statistics are there to avoid. Then `cast` has no meaning.
enum class Statistics : std::uint8_t { f32, input };

struct NormRowsOptions {
  std::int64_t cols = 0;  // length of a run; x has numel / cols of them
  // A run is one of `groups` of a sample, and `space` of its elements share a gain: element i of
  // run r belongs to channel (r % groups) * (cols / space) + i / space.
  std::int64_t groups = 1;
  std::int64_t space = 1;
  bool centre = true;  // subtract the mean
  double eps = 1e-5;
  bool unit_offset = false;  // the gain is 1 + weight
  double p = 1;              // the first ceil(cols p) elements of a run enter its statistics
  GainCast cast = GainCast::after_gain;
  Statistics statistics = Statistics::f32;
};

// The general one. weight and bias have groups * cols / space elements, or are undefined.
// `name` is the op's name in error messages.
// Throws: if cols does not divide x, groups * cols / space does not match, or p is not in (0, 1].
[[nodiscard]] Tensor norm_rows(const Tensor& x, const Tensor& weight, const Tensor& bias,
                               const NormRowsOptions& options, const char* name = "norm_rows");

// Shapes: x (..., S1, ..., Sk), weight and bias (S1, ..., Sk) or undefined; k = `axes`.
// Source: Ba, Kiros, Hinton 2016, arXiv 1607.06450.
struct LayerNormOptions {
  double eps = 1e-5;
  int axes = 1;
  Statistics statistics = Statistics::f32;
};
[[nodiscard]] Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                LayerNormOptions options = {});

// y = gain * x / sqrt(sum of the first k squares / k + eps), k = ceil(n p).
// Shapes: x (..., n), weight (n) or undefined.
// Source: Zhang, Sennrich 2019, arXiv 1910.07467.
struct RmsNormOptions {
  double eps = 1e-6;
  bool unit_offset = false;
  double p = 1;
  GainCast cast = GainCast::after_gain;
  Statistics statistics = Statistics::f32;
};
[[nodiscard]] Tensor rms_norm(const Tensor& x, const Tensor& weight, RmsNormOptions options = {});

// Shapes: x (N, C, ...), weight and bias (C) or undefined.
// Throws: if `groups` is below 1 or does not divide C.
// Source: Wu, He 2018, arXiv 1803.08494.
struct GroupNormOptions {
  std::int64_t groups = 1;
  double eps = 1e-5;
};
[[nodiscard]] Tensor group_norm(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                GroupNormOptions options);

// Shapes: x (N, C, L) or (N, C, H, W), weight and bias (C) or undefined.
// Where `stats` are kept, training moves them towards the mean over N of each channel's mean and
// unbiased variance, and evaluation uses them in the place of the sample's own.
// Throws: without a spatial axis, and in training where a channel's own statistics are over one
// value. In evaluation, where none are kept, one value becomes bias.
// Source: Ulyanov, Vedaldi, Lempitsky 2016, arXiv 1607.08022.
struct InstanceNormOptions {
  double eps = 1e-5;
  bool training = true;
  Momentum momentum = 0.1;
};
[[nodiscard]] Tensor instance_norm(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                   InstanceNormOptions options = {}, RunningStatistics stats = {});

}  // namespace norma
