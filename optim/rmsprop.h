// RMSprop.
#pragma once

#include "core/config/config.h"
#include "optim/optimizer.h"

namespace norma {

// With g the gradient plus weight_decay * w:
//   v <- alpha v + (1 - alpha) g^2;  d = g / (sqrt(v) + eps);  w <- w - lr d.
// With momentum, b <- momentum b + d takes the place of d. With centered, v loses the square of the
// gradient's mean before the root. eps stands outside of the root; the decay is an L2 penalty, not
// decoupled. Source: torch.optim.RMSprop; Hinton 2012, lecture 6.
struct RmspropConfig : OptimizerOptions {
  static constexpr const char* type = "rmsprop";
  static constexpr const char* doc = "Gradients divided by their running root mean square.";
  static constexpr const char* source = "torch.optim.RMSprop";
  double alpha = 0.99;
  double eps = 1e-8;
  double momentum = 0;
  bool centered = false;
  RmspropConfig() { lr = 1e-2; }
  static config::Fields fields();
};

[[nodiscard]] OptimizerPtr make_optimizer(const RmspropConfig& config,
                                          FlatParametersPtr parameters);

}  // namespace norma
