// Lion.
#pragma once

#include <array>

#include "core/config/config.h"
#include "optim/optimizer.h"

namespace norma {

//   w <- (1 - lr weight_decay) w - lr sign(beta1 m + (1 - beta1) g), with the old m;
//   m <- beta2 m + (1 - beta2) g.
// sign(0) is 0. The decay is decoupled: it never enters the sign. There is no eps. Source: Chen et
// al. 2023.
struct LionConfig : OptimizerOptions {
  static constexpr const char* type = "lion";
  static constexpr const char* doc = "The sign of a blend of momentum and gradient.";
  static constexpr const char* source = "Chen et al. 2023";
  std::array<double, 2> betas = {0.9, 0.99};
  LionConfig() { lr = 1e-4; }
  static config::Fields fields();
};

[[nodiscard]] OptimizerPtr make_optimizer(const LionConfig& config, FlatParametersPtr parameters);

}  // namespace norma
