// Down in steps.
#pragma once

#include "optim/schedule.h"

namespace norma {

// factor^floor(t / every); the steps of warm-up count. Source: torch.optim.lr_scheduler.StepLR.
struct StepScheduleConfig : WarmupOptions {
  static constexpr const char* type = "step";
  static constexpr const char* doc = "Times factor, every so many steps.";
  static constexpr const char* source = "torch.optim.lr_scheduler.StepLR";
  std::int64_t every = 1;
  double factor = 0.1;
  static config::Fields fields();
};

[[nodiscard]] SchedulePtr make_schedule(const StepScheduleConfig& config, double lr,
                                        const RunLength& run);

}  // namespace norma
