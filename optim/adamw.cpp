#include "optim/adamw.h"

namespace norma {
namespace {

class AdamW final : public AdamFamily {
 public:
  AdamW(const AdamWConfig& config, FlatParametersPtr parameters)
      : AdamFamily(config, std::move(parameters), config.amsgrad), config_(config) {}

 private:
  kernels::AdamSetting numbers(const StepSetting& s) const override {
    return adam_numbers(config_, s.lr, s.weight_decay, s.step, /*decoupled=*/true);
  }

  AdamWConfig config_;
};

}  // namespace

OptimizerPtr make_optimizer(const AdamWConfig& config, FlatParametersPtr parameters) {
  return std::make_unique<AdamW>(config, std::move(parameters));
}

}  // namespace norma
