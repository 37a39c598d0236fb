// Rounding: how far a model's output and gradient part from what it would compute in f64.
//
//   rounding.output   |y - y64| / |y64| on the first training batch
//   rounding.grad     likewise of the whole gradient of the loss (the mean, without a loss scale)
//
// Both models have the same weights, those that the first one computes with: in bf16 and f16 the
// rounded copies. So it is the computation that is measured, not the rounding of weights. Training
// mode without dropout.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "apps/data/data_set.h"
#include "layers/losses.h"
#include "models/model.h"

namespace norma {

// `exact` is the same model built in f64; its state is overwritten. Running statistics of `model`
// move.
[[nodiscard]] std::vector<std::pair<std::string, double>> rounding(Model& model, Model& exact,
                                                                   const Batch& batch,
                                                                   const LossConfig& loss);

}  // namespace norma
