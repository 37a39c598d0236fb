// The rate stays.
#pragma once

#include "optim/schedule.h"

namespace norma {

// The factor 1 after the warm-up.
struct ConstantScheduleConfig : WarmupOptions {
  static constexpr const char* type = "constant";
  static constexpr const char* doc = "The same rate throughout.";
  static constexpr const char* source = "as torch.optim.lr_scheduler.ConstantLR, with warm-up";
  static config::Fields fields();
};

[[nodiscard]] SchedulePtr make_schedule(const ConstantScheduleConfig& config, double lr,
                                        const RunLength& run);

}  // namespace norma
