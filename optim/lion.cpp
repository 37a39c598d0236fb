#include "optim/lion.h"

namespace norma {
namespace {

class Lion final : public Optimizer {
 public:
  Lion(const LionConfig& config, FlatParametersPtr parameters)
      : Optimizer(config, std::move(parameters)),
        config_(config),
        momentum_(add_buffer("momentum")) {}

 private:
  void update(const Update& u) override {
    const auto settings = per_setting(u, [&](const StepSetting& s) {
      return kernels::LionSetting{s.lr, 1 - s.lr * s.weight_decay, config_.betas[0],
                                  config_.betas[1]};
    });
    dispatch_compute(parameters().dtype(), "lion", [&]<class T>() {
      kernels::lion_update<T>(u.segments, settings, u.grad_scale,
                              parameters().gradients().data<T>(), pointer<T>(momentum_),
                              parameters().weights().mutable_data<T>());
    });
  }

  LionConfig config_;
  Tensor momentum_;
};

}  // namespace

config::Fields LionConfig::fields() {
  using namespace config;
  return OptimizerOptions::fields() +
         Fields{field("betas", &LionConfig::betas,
                      "Share of the momentum in the sign, and the momentum's own memory.",
                      at_least(0) & below(1))};
}

OptimizerPtr make_optimizer(const LionConfig& config, FlatParametersPtr parameters) {
  return std::make_unique<Lion>(config, std::move(parameters));
}

}  // namespace norma
