// The identity: the same values and memory under another name in the graph.
#pragma once

#include "core/tensor.h"

namespace norma {

// y = x, sharing x's memory; dx = dy.
[[nodiscard]] Tensor alias(const Tensor& x);

}  // namespace norma
