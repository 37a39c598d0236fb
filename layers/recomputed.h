// Blocks whose values are computed again for the gradient (train.recompute).
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "layers/layer.h"

namespace norma {

// What a block computes from its inputs in a pass.
using BlockForward =
    std::function<std::vector<Tensor>(std::span<const Tensor> inputs, const Forward& pass)>;

// forward(inputs, pass); with pass.recompute the graph keeps the inputs alone, and forward runs a
// second time for the gradient, with the same dropout and without a second update of running
// statistics. Observers see the first run alone. `block` owns the parameters that forward reads.
[[nodiscard]] std::vector<Tensor> recomputed(const Module& block, const BlockForward& forward,
                                             std::span<const Tensor> inputs, const Forward& pass);
// The same of a layer.
[[nodiscard]] Tensor recomputed(Layer& layer, const Tensor& x, const Forward& pass);

}  // namespace norma
