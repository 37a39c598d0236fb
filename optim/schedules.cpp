#include "optim/schedules.h"

namespace norma {

SchedulePtr make_schedule(const ScheduleConfig& config, double lr, const RunLength& run) {
  return config.visit([&](const auto& member) { return make_schedule(member, lr, run); });
}

SchedulePtr make_schedule(const ScheduleConfig& config, double lr, std::int64_t total_steps,
                          std::int64_t tokens_per_step) {
  return make_schedule(config, lr, RunLength{total_steps, tokens_per_step});
}

}  // namespace norma
