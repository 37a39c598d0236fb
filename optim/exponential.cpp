#include "optim/exponential.h"

#include <cmath>

namespace norma {
namespace {

class Exponential final : public Schedule {
 public:
  Exponential(const ExponentialScheduleConfig& config, double lr, const RunLength& run)
      : Schedule(lr, run, config), factor_(config.factor) {}

 private:
  double shape(std::int64_t t, double) const override {
    return std::pow(factor_, static_cast<double>(t));
  }

  double factor_;
};

}  // namespace

config::Fields ExponentialScheduleConfig::fields() {
  using namespace config;
  return WarmupOptions::fields() +
         Fields{field("factor", &ExponentialScheduleConfig::factor,
                      "What the rate is multiplied by.",
                      above(0) & at_most(1) & required() & also_called("gamma"))};
}

SchedulePtr make_schedule(const ExponentialScheduleConfig& config, double lr,
                          const RunLength& run) {
  return std::make_unique<Exponential>(config, lr, run);
}

}  // namespace norma
