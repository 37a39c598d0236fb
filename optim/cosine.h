// Half a cosine down.
#pragma once

#include "optim/schedule.h"

namespace norma {

// f + (1 - f)(1 + cos(pi p)) / 2, f being final_factor. Source: Loshchilov and Hutter 2017.
struct CosineScheduleConfig : WarmupOptions {
  static constexpr const char* type = "cosine";
  static constexpr const char* doc = "Half a cosine from lr to final_factor * lr.";
  static constexpr const char* source = "Loshchilov and Hutter 2017";
  double final_factor = 0;
  static config::Fields fields();
};

[[nodiscard]] SchedulePtr make_schedule(const CosineScheduleConfig& config, double lr,
                                        const RunLength& run);

}  // namespace norma
