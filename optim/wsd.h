// Warm-up, stable, decay.
#pragma once

#include "optim/schedule.h"

namespace norma {

// 1 until step T - D, then 1 - (1 - f)(t - T + D) / D, D being decay_steps and f final_factor.
// Source: Hu et al. 2024 (MiniCPM).
struct WsdScheduleConfig : WarmupOptions {
  static constexpr const char* type = "wsd";
  static constexpr const char* doc = "Constant, with a linear decay over the last decay_steps.";
  static constexpr const char* source = "Hu et al. 2024";
  std::int64_t decay_steps = 0;
  double final_factor = 0;
  static config::Fields fields();
};

[[nodiscard]] SchedulePtr make_schedule(const WsdScheduleConfig& config, double lr,
                                        const RunLength& run);

}  // namespace norma
