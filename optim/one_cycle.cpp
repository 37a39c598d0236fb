#include "optim/one_cycle.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace norma {
namespace {

class OneCycle final : public Schedule {
 public:
  OneCycle(const OneCycleScheduleConfig& config, double lr, const RunLength& run)
      : Schedule(lr, run, {}), config_(config) {}

 private:
  double shape(std::int64_t t, double) const override {
    // As torch has it: the two parts meet at step pct_start * T - 1, which may be a fraction, and
    // the last step of the run has the least rate.
    const double steps = static_cast<double>(total_steps());
    const double top = config_.pct_start * steps - 1, last = steps - 1;
    const double first = 1 / config_.div_factor, least = first / config_.final_div_factor;
    const double now = std::min(static_cast<double>(t), std::max(last, 0.0));
    if (now <= top) return between(first, 1, top > 0 ? now / top : 1);
    return between(1, least, last > top ? (now - top) / (last - top) : 1);
  }
  // Half a cosine from a (p = 0) to b (p = 1).
  static double between(double a, double b, double p) {
    return b + (a - b) / 2 * (1 + std::cos(std::numbers::pi * p));
  }

  OneCycleScheduleConfig config_;
};

}  // namespace

config::Fields OneCycleScheduleConfig::fields() {
  using namespace config;
  return {field("pct_start", &OneCycleScheduleConfig::pct_start,
                "Share of the run in which the rate rises.", between(0, 1)),
          field("div_factor", &OneCycleScheduleConfig::div_factor, "lr by the first rate.",
                at_least(1)),
          field("final_div_factor", &OneCycleScheduleConfig::final_div_factor,
                "The first rate by the last one.", at_least(1))};
}

SchedulePtr make_schedule(const OneCycleScheduleConfig& config, double lr, const RunLength& run) {
  return std::make_unique<OneCycle>(config, lr, run);
}

}  // namespace norma
