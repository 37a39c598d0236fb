#include "optim/constant.h"

namespace norma {
namespace {

class Constant final : public Schedule {
 public:
  Constant(const ConstantScheduleConfig& config, double lr, const RunLength& run)
      : Schedule(lr, run, config) {}

 private:
  double shape(std::int64_t, double) const override { return 1; }
};

}  // namespace

config::Fields ConstantScheduleConfig::fields() { return WarmupOptions::fields(); }

SchedulePtr make_schedule(const ConstantScheduleConfig& config, double lr, const RunLength& run) {
  return std::make_unique<Constant>(config, lr, run);
}

}  // namespace norma
