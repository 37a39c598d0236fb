// Adagrad.
#pragma once

#include "core/config/config.h"
#include "optim/optimizer.h"

namespace norma {

// With g the gradient plus weight_decay * w, in step t:
//   s <- s + g^2;  w <- w - lr / (1 + (t - 1) lr_decay) g / (sqrt(s) + eps).
// eps stands outside of the root; the decay is an L2 penalty, not decoupled.
// Source: torch.optim.Adagrad; Duchi et al. 2011.
struct AdagradConfig : OptimizerOptions {
  static constexpr const char* type = "adagrad";
  static constexpr const char* doc = "Gradients divided by the root of the sum of their squares.";
  static constexpr const char* source = "torch.optim.Adagrad";
  double lr_decay = 0;
  double initial_accumulator_value = 0;
  double eps = 1e-10;
  AdagradConfig() { lr = 1e-2; }
  static config::Fields fields();
};

[[nodiscard]] OptimizerPtr make_optimizer(const AdagradConfig& config,
                                          FlatParametersPtr parameters);

}  // namespace norma
