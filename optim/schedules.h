// The family of schedules. To add one: a file pair with its configuration and make_schedule(), its
// name in the list below, and a row in tests/optim.
#pragma once

#include "core/config/config.h"
#include "optim/constant.h"
#include "optim/cosine.h"
#include "optim/exponential.h"
#include "optim/inverse_sqrt.h"
#include "optim/linear.h"
#include "optim/noam.h"
#include "optim/one_cycle.h"
#include "optim/step.h"
#include "optim/wsd.h"

namespace norma {

struct ScheduleConfig
    : config::OneOf<ConstantScheduleConfig, LinearScheduleConfig, CosineScheduleConfig,
                    InverseSqrtScheduleConfig, WsdScheduleConfig, StepScheduleConfig,
                    ExponentialScheduleConfig, NoamScheduleConfig, OneCycleScheduleConfig> {
  static constexpr const char* family = "schedule";
  static constexpr const char* family_doc = "How the rate changes over a run.";
  using OneOf::OneOf;
};

// The schedule of a configuration, for a peak rate `lr` and a run of this length.
[[nodiscard]] SchedulePtr make_schedule(const ScheduleConfig& config, double lr,
                                        const RunLength& run);
[[nodiscard]] SchedulePtr make_schedule(const ScheduleConfig& config, double lr,
                                        std::int64_t total_steps, std::int64_t tokens_per_step = 0);

}  // namespace norma
