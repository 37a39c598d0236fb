// The schedule of the Transformer.
#pragma once

#include "optim/schedule.h"

namespace norma {

// lr * d^-1/2 min((t + 1)^-1/2, (t + 1) W^-3/2) throughout, d being the width of the model and W
// the steps of warm-up. Source: Vaswani et al. 2017.
struct NoamScheduleConfig : WarmupOptions {
  static constexpr const char* type = "noam";
  static constexpr const char* doc =
      "Linear up, then down with the root of time, scaled by the model's width.";
  static constexpr const char* source = "Vaswani et al. 2017";
  std::int64_t width = 0;
  static config::Fields fields();
};

[[nodiscard]] SchedulePtr make_schedule(const NoamScheduleConfig& config, double lr,
                                        const RunLength& run);

}  // namespace norma
