// Parameter groups: which parameters decay, which learn at another rate, which do not learn.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/config/config.h"
#include "core/flat.h"
#include "optim/qk_clip.h"

namespace norma {

// One entry of `groups`: settings for the parameters whose names match.
struct GroupConfig {
  std::string match;                   // a glob: "blocks.*.attention.*"
  double lr_factor = 1;                // times the schedule's rate
  std::optional<double> weight_decay;  // in the place of the optimizer's
  bool frozen = false;                 // no gradient, no update, no decay
  static config::Fields fields();
};

// What the configurations of all optimizers share: their first base.
struct OptimizerOptions {
  double lr = 1e-3;
  double weight_decay = 0;
  // Globs of parameters without weight decay. Absent: every parameter with fewer than two axes
  // (biases, gains). Empty: none, so that everything decays.
  std::optional<std::vector<std::string>> no_decay;
  std::vector<GroupConfig> groups;
  std::optional<QkClipConfig> qk_clip;
  static config::Fields fields();
};

// What holds for one parameter.
struct ParameterSetting {
  double lr_factor = 1;
  double weight_decay = 0;
  bool frozen = false;
  bool decays = true;      // false for what no_decay names
  bool own_decay = false;  // its group sets the decay
  int group = -1;          // its entry in `groups`, or -1 for the optimizer's own settings
};

// The setting of every parameter, in order. A parameter belongs to the first group that matches it,
// else to the optimizer's own. One that `no_decay` names does not decay, whatever its group says.
// Throws Error for a glob that matches nothing (or nothing that an earlier group has left over),
// and for a group that sets a decay for parameters that all stand in no_decay.
[[nodiscard]] std::vector<ParameterSetting> assign_groups(const OptimizerOptions& config,
                                                          const FlatParameters& parameters);

}  // namespace norma
