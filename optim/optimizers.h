// The family of optimizers. To add one: a file pair with its configuration and make_optimizer(),
// its name in the list below, and a row in tests/optim.
#pragma once

#include "core/config/config.h"
#include "optim/adafactor.h"
#include "optim/adagrad.h"
#include "optim/adam.h"
#include "optim/adamw.h"
#include "optim/lion.h"
#include "optim/muon.h"
#include "optim/radam.h"
#include "optim/rmsprop.h"
#include "optim/sgd.h"

namespace norma {

struct OptimizerConfig
    : config::OneOf<SgdConfig, AdamConfig, AdamWConfig, RAdamConfig, RmspropConfig, AdagradConfig,
                    AdafactorConfig, LionConfig, MuonConfig> {
  static constexpr const char* family = "optimizer";
  static constexpr const char* family_doc = "How gradients become a step.";
  using OneOf::OneOf;

  // What all members have: lr, weight_decay, groups.
  [[nodiscard]] const OptimizerOptions& options() const;
};

// The optimizer of a configuration. Throws Error where a glob of its groups matches nothing.
[[nodiscard]] OptimizerPtr make_optimizer(const OptimizerConfig& config,
                                          FlatParametersPtr parameters);
// Flattens the parameters first; see FlatParameters.
[[nodiscard]] OptimizerPtr make_optimizer(const OptimizerConfig& config,
                                          const std::vector<NamedParameter>& parameters);

}  // namespace norma
