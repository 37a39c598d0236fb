#include "optim/adagrad.h"

namespace norma {
namespace {

class Adagrad final : public Optimizer {
 public:
  Adagrad(const AdagradConfig& config, FlatParametersPtr parameters)
      : Optimizer(config, std::move(parameters)),
        config_(config),
        sum_(add_buffer("sum_of_squares", config.initial_accumulator_value)) {}

 private:
  void update(const Update& u) override {
    const auto settings = per_setting(u, [&](const StepSetting& s) {
      const double age = static_cast<double>(s.step - 1);
      return kernels::AdagradSetting{s.lr / (1 + age * config_.lr_decay), s.weight_decay,
                                     config_.eps};
    });
    dispatch_compute(parameters().dtype(), "adagrad", [&]<class T>() {
      kernels::adagrad_update<T>(u.segments, settings, u.grad_scale,
                                 parameters().gradients().data<T>(), pointer<T>(sum_),
                                 parameters().weights().mutable_data<T>());
    });
  }

  AdagradConfig config_;
  Tensor sum_;
};

}  // namespace

config::Fields AdagradConfig::fields() {
  using namespace config;
  return OptimizerOptions::fields() +
         Fields{field("lr_decay", &AdagradConfig::lr_decay,
                      "The rate is divided by 1 + steps * lr_decay.", at_least(0)),
                field("initial_accumulator_value", &AdagradConfig::initial_accumulator_value,
                      "The sum of squares before the first step.", at_least(0)),
                field("eps", &AdagradConfig::eps, "Added to the root of the sum of squares.",
                      above(0))};
}

OptimizerPtr make_optimizer(const AdagradConfig& config, FlatParametersPtr parameters) {
  return std::make_unique<Adagrad>(config, std::move(parameters));
}

}  // namespace norma
