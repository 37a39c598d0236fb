// A straight line down.
#pragma once

#include "optim/schedule.h"

namespace norma {

// 1 - (1 - f) p, f being final_factor.
struct LinearScheduleConfig : WarmupOptions {
  static constexpr const char* type = "linear";
  static constexpr const char* doc = "A straight line from lr to final_factor * lr.";
  static constexpr const char* source = "as torch.optim.lr_scheduler.LinearLR, with warm-up";
  double final_factor = 0;
  static config::Fields fields();
};

[[nodiscard]] SchedulePtr make_schedule(const LinearScheduleConfig& config, double lr,
                                        const RunLength& run);

}  // namespace norma
