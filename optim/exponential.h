// Down exponentially.
#pragma once

#include "optim/schedule.h"

namespace norma {

// factor^t; the steps of warm-up count. Source: torch.optim.lr_scheduler.ExponentialLR.
struct ExponentialScheduleConfig : WarmupOptions {
  static constexpr const char* type = "exponential";
  static constexpr const char* doc = "Times factor, every step.";
  static constexpr const char* source = "torch.optim.lr_scheduler.ExponentialLR";
  double factor = 1;
  static config::Fields fields();
};

[[nodiscard]] SchedulePtr make_schedule(const ExponentialScheduleConfig& config, double lr,
                                        const RunLength& run);

}  // namespace norma
