#include "optim/adam.h"

#include <cmath>

namespace norma {
namespace {

class Adam final : public AdamFamily {
 public:
  Adam(const AdamConfig& config, FlatParametersPtr parameters)
      : AdamFamily(config, std::move(parameters), config.amsgrad), config_(config) {}

 private:
  kernels::AdamSetting numbers(const StepSetting& s) const override {
    return adam_numbers(config_, s.lr, s.weight_decay, s.step, /*decoupled=*/false);
  }

  AdamConfig config_;
};

}  // namespace

config::Fields AdamOptions::fields() {
  using namespace config;
  return OptimizerOptions::fields() +
         Fields{
             field("betas", &AdamOptions::betas, "Memory of the first and the second moment.",
                   at_least(0) & below(1) & also_called("beta1 beta2")),
             field("eps", &AdamOptions::eps, "Added to the root of the second moment.", above(0)),
             field("amsgrad", &AdamOptions::amsgrad, "Divide by the largest second moment so far."),
             field("v_init", &AdamOptions::v_init,
                   "The second moment before the first step: zero, or the first gradient's "
                   "square (GI-Adam).")};
}

kernels::AdamSetting adam_numbers(const AdamOptions& options, double lr, double weight_decay,
                                  std::int64_t step, bool decoupled) {
  const auto [beta1, beta2] = options.betas;
  const double t = static_cast<double>(step);
  const double correction1 = 1 - std::pow(beta1, t), correction2 = 1 - std::pow(beta2, t);
  // With the first gradient's square in v before the first step, v is that square after it too.
  const bool whole = step == 1 && options.v_init == SecondMomentInit::first_gradient;
  return {.keep = decoupled ? 1 - lr * weight_decay : 1,
          .l2 = decoupled ? 0 : weight_decay,
          .beta1 = beta1,
          .beta2 = beta2,
          .square_part = whole ? 1 : 1 - beta2,
          .step_size = lr / correction1,
          .root_scale = 1 / std::sqrt(correction2),
          .eps = options.eps,
          .adaptive = true};
}

AdamFamily::AdamFamily(const OptimizerOptions& options, FlatParametersPtr parameters, bool amsgrad)
    : Optimizer(options, std::move(parameters)),
      first_(add_buffer("first_moment")),
      second_(add_buffer("second_moment")) {
  if (amsgrad) largest_ = add_buffer("largest_second_moment");
}

void AdamFamily::update(const Update& u) {
  const auto settings = per_setting(u, [&](const StepSetting& s) { return numbers(s); });
  dispatch_compute(parameters().dtype(), "adam", [&]<class T>() {
    kernels::adam_update<T>(u.segments, settings, u.grad_scale, parameters().gradients().data<T>(),
                            pointer<T>(first_), pointer<T>(second_), pointer<T>(largest_),
                            parameters().weights().mutable_data<T>());
  });
}

OptimizerPtr make_optimizer(const AdamConfig& config, FlatParametersPtr parameters) {
  return std::make_unique<Adam>(config, std::move(parameters));
}

}  // namespace norma
