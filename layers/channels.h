// Where the channels stand: first in images, last in sequences of features.
#pragma once

#include "layers/layer.h"

namespace norma {

// The number of channels of a layer's input. Throws Error for ids, or without an axis.
[[nodiscard]] std::int64_t channels_of(const char* layer, const Signature& in);
// (B, T, C) as (B T, C).
[[nodiscard]] Tensor tokens_as_samples(const Tensor& x);

}  // namespace norma
