// Down with the root of time.
#pragma once

#include "optim/schedule.h"

namespace norma {

// sqrt(max(W, 1) / (t + 1)), W being the steps of warm-up.
struct InverseSqrtScheduleConfig : WarmupOptions {
  static constexpr const char* type = "inverse_sqrt";
  static constexpr const char* doc = "lr * sqrt(W / (t + 1)) after W steps of warm-up.";
  static constexpr const char* source = "fairseq inverse_sqrt";
  static config::Fields fields();
};

[[nodiscard]] SchedulePtr make_schedule(const InverseSqrtScheduleConfig& config, double lr,
                                        const RunLength& run);

}  // namespace norma
