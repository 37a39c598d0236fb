#include "optim/inverse_sqrt.h"

#include <algorithm>
#include <cmath>

namespace norma {
namespace {

class InverseSqrt final : public Schedule {
 public:
  InverseSqrt(const InverseSqrtScheduleConfig& config, double lr, const RunLength& run)
      : Schedule(lr, run, config) {}

 private:
  double shape(std::int64_t t, double) const override {
    const double w = static_cast<double>(std::max<std::int64_t>(warmup_steps(), 1));
    return std::sqrt(w / static_cast<double>(t + 1));
  }
};

}  // namespace

config::Fields InverseSqrtScheduleConfig::fields() { return WarmupOptions::fields(); }

SchedulePtr make_schedule(const InverseSqrtScheduleConfig& config, double lr,
                          const RunLength& run) {
  return std::make_unique<InverseSqrt>(config, lr, run);
}

}  // namespace norma
