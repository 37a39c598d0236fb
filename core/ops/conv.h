// Convolution.
#pragma once

#include <cstdint>

#include "core/ops/window.h"
#include "core/tensor.h"

namespace norma {

struct Conv2dOptions {
  Extent stride = 1;
  Extent padding = 0;  // zeros on every side
  Extent dilation = 1;
  std::int64_t groups = 1;
};

// y[n, o, i, j] = bias[o] + sum over c, a, b of weight[o, c, a, b]
//   * x[n, c, i stride + a dilation - padding, j stride + b dilation - padding],
// c over the channels of o's group, zeros outside of x (a correlation, as everywhere in learning).
//
// Shapes: x (samples, channels, height, width), weight (outputs, channels / groups, kernel height,
// kernel width), bias (outputs) or undefined, y (samples, outputs, floor((height + 2 padding -
// dilation (kernel - 1) - 1) / stride) + 1, ...). Samples may be 0.
// Saves: x, weight, bias.
// Numerics: half types are computed in f32 and rounded once. A 3 x 3 kernel of stride 1 over many
// channels goes through Winograd's F(2 x 2, 3 x 3), whose error is up to twice that of the sum;
// there a value that is not finite reaches all outputs of the 2 x 2 tiles that read it. Throws: if
// a shape does not fit, the types differ, or the kernel is larger than the padded input. Source:
// Lavin and Gray 2015 for the transform.
[[nodiscard]] Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                            Conv2dOptions options = {});

struct Conv1dOptions {
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t dilation = 1;
  std::int64_t groups = 1;
};

// The same over one axis: x (samples, channels, length), weight (outputs, channels / groups,
// kernel).
[[nodiscard]] Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                            Conv1dOptions options = {});

}  // namespace norma
