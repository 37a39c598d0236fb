// How large a first step Adam can take.
//
// Adam's first step is lr * g / (|g| + eps), of length lr in every weight, however small the
// gradient. Along that line the loss first falls, and beyond some rate stands higher than before
// the step: the run is thrown out of where it began before the moments know anything. That rate is
// measured here, and is the limit without warm-up.
// Source: Kalra & Barkeshli 2024, Why warm up the learning rate? (arXiv 2406.09405), which finds
// the rate to begin a warm-up with so.
#pragma once

#include <functional>
#include <vector>

#include "core/tensor.h"

namespace norma {

constexpr double kAdamEps = 1e-8;

// The largest rate at which a step of Adam from `gradients` leaves `loss` no higher than it is, to
// a twentieth; infinite if 10 still does, 0 if 1e-7 does not, NaN if `loss` is. `parameters` are as
// before when it returns, even if `loss` throws.
[[nodiscard]] double first_step_limit(const std::vector<Tensor>& parameters,
                                      const std::vector<std::vector<double>>& gradients,
                                      const std::function<double()>& loss);

}  // namespace norma
