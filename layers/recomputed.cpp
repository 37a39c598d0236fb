#include "layers/recomputed.h"

#include <utility>

#include "core/recompute.h"

namespace norma {

std::vector<Tensor> recomputed(const Module& block, const BlockForward& forward,
                               std::span<const Tensor> inputs, const Forward& pass) {
  if (!pass.recompute) return forward(inputs, pass);
  // The second run draws the same numbers: it counts on from the draws of the pass up to here.
  Forward before = pass;
  before.recompute = false;
  before.observer = nullptr;
  const auto run = [forward, before, live = &pass](std::span<const Tensor> in) mutable {
    if (live) return forward(in, *std::exchange(live, nullptr));
    const Forward again = before;
    return forward(in, again);
  };
  std::vector<Tensor> also = block.parameters();
  for (const Tensor& t : {pass.memory, pass.attention_bias}) {
    if (t.defined()) also.push_back(t);
  }
  return recompute(run, inputs, also);
}

Tensor recomputed(Layer& layer, const Tensor& x, const Forward& pass) {
  if (!pass.recompute) return layer.forward(x, pass);
  const BlockForward forward = [&layer](std::span<const Tensor> in, const Forward& p) {
    return std::vector<Tensor>{layer.forward(in[0], p)};
  };
  return recomputed(layer, forward, std::span(&x, 1), pass)[0];
}

}  // namespace norma
