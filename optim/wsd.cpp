#include "optim/wsd.h"

#include <algorithm>

namespace norma {
namespace {

class Wsd final : public Schedule {
 public:
  Wsd(const WsdScheduleConfig& config, double lr, const RunLength& run)
      : Schedule(lr, run, config), config_(config) {}

  std::string warning() const override {
    if (warmup_steps() + config_.decay_steps <= total_steps()) return Schedule::warning();
    return fmt::format(
        "schedule: {} steps of warm-up and {} of decay are more than the run's {}; the rate jumps",
        warmup_steps(), config_.decay_steps, total_steps());
  }

 private:
  double shape(std::int64_t t, double) const override {
    const std::int64_t into = t - total_steps() + config_.decay_steps;
    if (into <= 0 || config_.decay_steps == 0) return 1;
    const double p = static_cast<double>(into) / static_cast<double>(config_.decay_steps);
    return 1 - (1 - config_.final_factor) * std::min(p, 1.0);
  }

  WsdScheduleConfig config_;
};

}  // namespace

config::Fields WsdScheduleConfig::fields() {
  using namespace config;
  return WarmupOptions::fields() +
         Fields{field("decay_steps", &WsdScheduleConfig::decay_steps,
                      "The last steps, over which the rate falls.", at_least(0) & required()),
                final_factor_field<WsdScheduleConfig>()};
}

SchedulePtr make_schedule(const WsdScheduleConfig& config, double lr, const RunLength& run) {
  return std::make_unique<Wsd>(config, lr, run);
}

}  // namespace norma
