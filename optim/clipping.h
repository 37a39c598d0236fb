// The global norm of the gradients, and clipping.
#pragma once

#include <optional>
#include <string>

#include "core/flat.h"

namespace norma {

struct ClippingConfig {
  std::optional<double> clip_norm = std::nullopt;   // above 0; absent: no limit
  std::optional<double> clip_value = std::nullopt;  // above 0; absent: no limit
};

struct Clipped {
  double norm = 0;        // of all gradients together, before clipping
  double grad_scale = 1;  // what the optimizer must multiply gradients by
  bool finite = true;     // false: leave the parameters alone, skip the step
  std::string parameter;  // the first one whose gradient is not finite
};

// sqrt(sum of g^2) over all parameters that have a gradient, summed in f64 with fixed chunks: the
// same bits at any number of threads. A gradient of 1e25 does not overflow. With a gradient that is
// not finite, `finite` is false and `parameter` names the first one.
[[nodiscard]] Clipped gradient_norm(FlatParameters& parameters);

// Clips gradients that count `grad_scale` times (1 / (accumulation * loss scale)). A norm above
// clip_norm is brought down by clip_norm / (norm + 1e-6), as torch.nn.utils.clip_grad_norm_ does;
// the factor is not applied, but handed on in `grad_scale`, and costs no pass. With clip_value,
// every element is then limited to +-clip_value, in place, and `grad_scale` is 1 afterwards.
// Gradients that are not finite are reported and left as they are.
// Throws Error if a limit is not above 0.
[[nodiscard]] Clipped clip_gradients(FlatParameters& parameters, const ClippingConfig& config,
                                     double grad_scale = 1);

}  // namespace norma
