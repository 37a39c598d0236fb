// Dropout.
#pragma once

#include "core/autograd.h"
#include "core/random.h"

namespace norma {

// Each element is 0 with probability p, else x / (1 - p), so that the mean stays. p = 0 gives x
// itself and draws nothing; p = 1 gives zeros, and a gradient of zeros.
// The mask is a function of the key and the element's index: word i of the stream. It is not
// stored; the gradient draws it again. Two calls need two keys.
// Throws Error if p is not within [0, 1].
// Source: Srivastava et al. 2014, in the inverted form of PyTorch.
[[nodiscard]] Tensor dropout(const Tensor& x, double p, RandomKey key);

}  // namespace norma
