// Pooling of images.
#pragma once

#include <cstdint>
#include <optional>

#include "core/ops/window.h"
#include "core/tensor.h"

namespace norma {

struct Pool2dOptions {
  std::optional<Extent> stride = std::nullopt;  // the kernel's size where absent
  Extent padding = 0;  // at most half of the kernel, so that no window is all padding
};

// The largest element of every window of `kernel`. The padding never wins, whatever the sign of x;
// NaN does. The gradient goes to the first of equal maxima in row-major order (to the first NaN).
//
// Shapes: x (samples, channels, height, width), y (samples, channels, floor((height + 2 padding -
// kernel) / stride) + 1, ...).
// Saves: x (for a graph of the gradient alone), and the position of every maximum.
// Throws: for other shapes, a kernel larger than the padded input, a padding above half of it.
[[nodiscard]] Tensor max_pool2d(const Tensor& x, Extent kernel, Pool2dOptions options = {});

// The mean of every window, the zeros of the padding counted: the divisor is always the kernel's
// size. Shapes and errors as for max_pool2d.
[[nodiscard]] Tensor avg_pool2d(const Tensor& x, Extent kernel, Pool2dOptions options = {});

// The mean over height and width: (samples, channels, height, width) -> (samples, channels).
// Throws: for other shapes, or over no elements.
[[nodiscard]] Tensor global_avg_pool(const Tensor& x);

}  // namespace norma
