#include "optim/cosine.h"

#include <cmath>
#include <numbers>

namespace norma {
namespace {

class Cosine final : public Schedule {
 public:
  Cosine(const CosineScheduleConfig& config, double lr, const RunLength& run)
      : Schedule(lr, run, config), final_(config.final_factor) {}

 private:
  double shape(std::int64_t, double p) const override {
    return final_ + (1 - final_) * (1 + std::cos(std::numbers::pi * p)) / 2;
  }

  double final_;
};

}  // namespace

config::Fields CosineScheduleConfig::fields() {
  return WarmupOptions::fields() + config::Fields{final_factor_field<CosineScheduleConfig>()};
}

SchedulePtr make_schedule(const CosineScheduleConfig& config, double lr, const RunLength& run) {
  return std::make_unique<Cosine>(config, lr, run);
}

}  // namespace norma
