#include "optim/linear.h"

namespace norma {
namespace {

class Linear final : public Schedule {
 public:
  Linear(const LinearScheduleConfig& config, double lr, const RunLength& run)
      : Schedule(lr, run, config), final_(config.final_factor) {}

 private:
  double shape(std::int64_t, double p) const override { return 1 - (1 - final_) * p; }

  double final_;
};

}  // namespace

config::Fields LinearScheduleConfig::fields() {
  return WarmupOptions::fields() + config::Fields{final_factor_field<LinearScheduleConfig>()};
}

SchedulePtr make_schedule(const LinearScheduleConfig& config, double lr, const RunLength& run) {
  return std::make_unique<Linear>(config, lr, run);
}

}  // namespace norma
