#include "optim/radam.h"

#include <cmath>

namespace norma {
namespace {

class RAdam final : public AdamFamily {
 public:
  RAdam(const RAdamConfig& config, FlatParametersPtr parameters)
      : AdamFamily(config, std::move(parameters)), config_(config) {}

 private:
  kernels::AdamSetting numbers(const StepSetting& s) const override {
    const auto [beta1, beta2] = config_.betas;
    const double t = static_cast<double>(s.step), power2 = std::pow(beta2, t);
    const double rho_inf = 2 / (1 - beta2) - 1;
    const double rho = rho_inf - 2 * t * power2 / (1 - power2);
    kernels::AdamSetting k{.keep = 1,
                           .l2 = s.weight_decay,
                           .beta1 = beta1,
                           .beta2 = beta2,
                           .square_part = 1 - beta2,
                           .step_size = s.lr / (1 - std::pow(beta1, t)),
                           .root_scale = 1,
                           .eps = config_.eps,
                           .adaptive = rho > 5};
    if (k.adaptive) {
      k.step_size *= std::sqrt((rho - 4) * (rho - 2) * rho_inf /
                               ((rho_inf - 4) * (rho_inf - 2) * rho) * (1 - power2));
    }
    return k;
  }

  RAdamConfig config_;
};

}  // namespace

config::Fields RAdamConfig::fields() {
  using namespace config;
  return OptimizerOptions::fields() +
         Fields{
             field("betas", &RAdamConfig::betas, "Memory of the first and the second moment.",
                   at_least(0) & below(1)),
             field("eps", &RAdamConfig::eps, "Added to the root of the second moment.", above(0))};
}

OptimizerPtr make_optimizer(const RAdamConfig& config, FlatParametersPtr parameters) {
  return std::make_unique<RAdam>(config, std::move(parameters));
}

}  // namespace norma
