// Up and down once.
#pragma once

#include "optim/schedule.h"

namespace norma {

// Half a cosine from lr / div_factor up to lr over the first pct_start of the run, then half a
// cosine down to lr / div_factor / final_div_factor at its last step. The momentum stays.
// Source: torch.optim.lr_scheduler.OneCycleLR; Smith and Topin 2018.
struct OneCycleScheduleConfig {
  static constexpr const char* type = "one_cycle";
  static constexpr const char* doc = "Up to lr and down again, in two half cosines.";
  static constexpr const char* source = "torch.optim.lr_scheduler.OneCycleLR";
  double pct_start = 0.3;
  double div_factor = 25;
  double final_div_factor = 1e4;
  static config::Fields fields();
};

[[nodiscard]] SchedulePtr make_schedule(const OneCycleScheduleConfig& config, double lr,
                                        const RunLength& run);

}  // namespace norma
