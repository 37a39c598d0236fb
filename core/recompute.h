// Recomputation: forget what lies inside a part of the graph, and compute it again for the
// gradient.
#pragma once

#include <functional>
#include <span>

#include "core/autograd.h"

namespace norma {

// f(inputs), recorded as one node that keeps its inputs alone. When the gradient comes, f is called
// again with gradients on, on the same inputs, and what it records takes the node's place: the same
// kernels with the same values, so the gradients are the same to the bit, second order included.
// Memory: what one such part saves at a time, for one forward pass more.
//
// `also` lists the tensors that f reads besides its inputs and that want a gradient (parameters):
// they must not change in between, which is checked. f must give the same result again; random
// draws are to be keyed anew in every call, and running statistics stay as they are while
// recomputing() is true. Without a gradient wanted, it is f(inputs).
// Source: Chen et al. 2016, arXiv 1604.06174.
[[nodiscard]] std::vector<Tensor> recompute(Replay f, std::span<const Tensor> inputs,
                                            std::span<const Tensor> also = {});

// True while f is called for the second time, on this thread.
[[nodiscard]] bool recomputing();

}  // namespace norma
