#include "optim/step.h"

#include <cmath>

namespace norma {
namespace {

class Step final : public Schedule {
 public:
  Step(const StepScheduleConfig& config, double lr, const RunLength& run)
      : Schedule(lr, run, config), config_(config) {}

 private:
  double shape(std::int64_t t, double) const override {
    return std::pow(config_.factor, static_cast<double>(t / config_.every));
  }

  StepScheduleConfig config_;
};

}  // namespace

config::Fields StepScheduleConfig::fields() {
  using namespace config;
  return WarmupOptions::fields() +
         Fields{field("every", &StepScheduleConfig::every, "Steps between two changes.",
                      at_least(1) & required() & also_called("step_size")),
                field("factor", &StepScheduleConfig::factor, "What the rate is multiplied by.",
                      above(0) & at_most(1) & also_called("gamma"))};
}

SchedulePtr make_schedule(const StepScheduleConfig& config, double lr, const RunLength& run) {
  return std::make_unique<Step>(config, lr, run);
}

}  // namespace norma
