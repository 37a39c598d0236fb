#include "optim/groups.h"

#include "core/error.h"
#include "optim/globs.h"

namespace norma {
namespace {

// One flag a parameter: true iff it does not decay.
std::vector<bool> without_decay(const OptimizerOptions& config, const FlatParameters& parameters) {
  std::vector<bool> none(static_cast<std::size_t>(parameters.count()), false);
  if (!config.no_decay) {
    for (std::int64_t i = 0; i < parameters.count(); ++i) {
      none[static_cast<std::size_t>(i)] = parameters.tensor(i).rank() < 2;
    }
    return none;
  }
  for (const std::string& glob : *config.no_decay) {
    require_match("optimizer.no_decay", glob, parameters);
    for (std::int64_t i = 0; i < parameters.count(); ++i) {
      if (matches_glob(parameters.name(i), glob)) none[static_cast<std::size_t>(i)] = true;
    }
  }
  return none;
}

}  // namespace

config::Fields GroupConfig::fields() {
  using namespace config;
  return {
      field("match", &GroupConfig::match,
            "Glob over parameter names: * stands for any characters, ? for one.",
            required() & not_empty()),
      field("lr_factor", &GroupConfig::lr_factor, "Times the rate of the schedule.", at_least(0)),
      field("weight_decay", &GroupConfig::weight_decay,
            "In the place of the optimizer's; null: the same.", at_least(0)),
      field("frozen", &GroupConfig::frozen, "These parameters do not change.")};
}

config::Fields OptimizerOptions::fields() {
  using namespace config;
  return {
      field("lr", &OptimizerOptions::lr, "Peak rate, which the schedule scales.",
            at_least(0) & also_called("learning_rate max_lr")),
      field("weight_decay", &OptimizerOptions::weight_decay,
            "L2 penalty; in adafactor, adamw, lion and muon the decoupled decay per unit of rate.",
            at_least(0)),
      field("no_decay", &OptimizerOptions::no_decay,
            "Globs of parameters without weight decay; null: all with fewer than two axes."),
      field("groups", &OptimizerOptions::groups,
            "Settings for some parameters; each belongs to the first group that matches."),
      field("qk_clip", &OptimizerOptions::qk_clip,
            "Scales queries and keys down where attention logits exceed tau; null: no.")};
}

std::vector<ParameterSetting> assign_groups(const OptimizerOptions& config,
                                            const FlatParameters& parameters) {
  const std::vector<bool> none = without_decay(config, parameters);
  std::vector<ParameterSetting> settings(none.size());
  for (std::size_t i = 0; i < settings.size(); ++i) {
    settings[i].decays = !none[i];
    settings[i].weight_decay = none[i] ? 0 : config.weight_decay;
  }
  for (std::size_t k = 0; k < config.groups.size(); ++k) {
    const GroupConfig& group = config.groups[k];
    bool taken = false, decays = false;
    require_match(fmt::format("optimizer.groups.{}", k), group.match, parameters);
    for (std::size_t i = 0; i < settings.size(); ++i) {
      if (!matches_glob(parameters.name(static_cast<std::int64_t>(i)), group.match)) continue;
      if (settings[i].group >= 0) continue;
      taken = true;
      decays = decays || !none[i];
      settings[i].group = static_cast<int>(k);
      settings[i].lr_factor = group.lr_factor;
      settings[i].frozen = group.frozen;
      settings[i].own_decay = group.weight_decay.has_value();
      if (group.weight_decay && !none[i]) settings[i].weight_decay = *group.weight_decay;
    }
    require(taken,
            "optimizer.groups.{}: all that '{}' matches belongs to earlier groups; put it "
            "before them",
            k, group.match);
    require(!group.weight_decay || *group.weight_decay == 0 || decays,
            "optimizer.groups.{}: weight_decay {} acts on nothing, since no parameter that '{}' "
            "matches decays{}; set no_decay",
            k, *group.weight_decay, group.match,
            config.no_decay ? "" : " (without no_decay, those with fewer than two axes do not)");
  }
  return settings;
}

}  // namespace norma
