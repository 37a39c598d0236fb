// Stochastic gradient descent.
#pragma once

#include "core/config/config.h"
#include "optim/optimizer.h"

namespace norma {

// With g the gradient plus weight_decay * w:
//   b <- momentum b + (1 - dampening) g, b being g in the first step;
//   w <- w - lr b, or w - lr (g + momentum b) with nesterov.
// The decay is an L2 penalty, part of the gradient and so of the momentum; there is no eps.
// Source: torch.optim.SGD; Sutskever et al. 2013.
struct SgdConfig : OptimizerOptions {
  static constexpr const char* type = "sgd";
  static constexpr const char* doc = "Gradient descent, with momentum if wanted.";
  static constexpr const char* source = "torch.optim.SGD";
  double momentum = 0;
  double dampening = 0;
  bool nesterov = false;
  static config::Fields fields();
  void check(config::Problems& problems, const std::string& path) const;
};

[[nodiscard]] OptimizerPtr make_optimizer(const SgdConfig& config, FlatParametersPtr parameters);

}  // namespace norma
