// Adam with decoupled weight decay.
#pragma once

#include "optim/adam.h"

namespace norma {

// w <- (1 - lr weight_decay) w, then Adam's step by the gradient alone: the decay is decoupled. eps
// as in Adam: outside of the root, behind the bias correction. Source: torch.optim.AdamW;
// Loshchilov and Hutter 2019.
struct AdamWConfig : AdamOptions {
  static constexpr const char* type = "adamw";
  static constexpr const char* doc = "Adam with decoupled weight decay.";
  static constexpr const char* source = "torch.optim.AdamW; Loshchilov and Hutter 2019";
  AdamWConfig() { weight_decay = 0.01; }
};

[[nodiscard]] OptimizerPtr make_optimizer(const AdamWConfig& config, FlatParametersPtr parameters);

}  // namespace norma
