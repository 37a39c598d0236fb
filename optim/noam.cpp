#include "optim/noam.h"

#include <algorithm>
#include <cmath>

namespace norma {
namespace {

class Noam final : public Schedule {
 public:
  Noam(const NoamScheduleConfig& config, double lr, const RunLength& run)
      : Schedule(lr, run, config), width_(static_cast<double>(config.width)) {}

 private:
  double shape(std::int64_t t, double) const override {
    const double n = static_cast<double>(t + 1), w = static_cast<double>(warmup_steps());
    const double down = 1 / std::sqrt(n);
    const double up = w > 0 ? n / (w * std::sqrt(w)) : down;
    return std::min(down, up) / std::sqrt(width_);
  }
  double factor(std::int64_t t) const override { return shape(t, 0); }

  double width_;
};

}  // namespace

config::Fields NoamScheduleConfig::fields() {
  using namespace config;
  return WarmupOptions::fields() + Fields{field("width", &NoamScheduleConfig::width,
                                                "Width of the model.", at_least(1) & required())};
}

SchedulePtr make_schedule(const NoamScheduleConfig& config, double lr, const RunLength& run) {
  return std::make_unique<Noam>(config, lr, run);
}

}  // namespace norma
