// Softmax and its logarithm along one axis. Half types are computed in f32 and rounded once.
#pragma once

#include "core/autograd.h"

namespace norma {

// exp(x - max) / sum(exp(x - max)) along `axis`. -inf gives 0; where all elements are -inf the
// output is 0 throughout, and so is the gradient. NaN and +inf give NaN.
// Saves: y. The last axis is the fast one; others are permuted to the end.
[[nodiscard]] Tensor softmax(const Tensor& x, int axis = -1);

// (x - max) - log(sum(exp(x - max))) along `axis`. Where all elements are -inf the output is -inf,
// and the gradient 0.
// Saves: y.
[[nodiscard]] Tensor log_softmax(const Tensor& x, int axis = -1);

}  // namespace norma
