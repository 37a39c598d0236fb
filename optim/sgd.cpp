#include "optim/sgd.h"

namespace norma {
namespace {

class Sgd final : public Optimizer {
 public:
  Sgd(const SgdConfig& config, FlatParametersPtr parameters)
      : Optimizer(config, std::move(parameters)), config_(config) {
    if (config.momentum > 0) momentum_ = add_buffer("momentum");
  }

 private:
  void update(const Update& u) override {
    // The buffer starts at zero, so that the whole first gradient gives torch's first value.
    const auto settings = per_setting(u, [&](const StepSetting& s) {
      return kernels::SgdSetting{s.lr, s.weight_decay, config_.momentum,
                                 s.step == 1 ? 1 : 1 - config_.dampening, config_.nesterov};
    });
    dispatch_compute(parameters().dtype(), "sgd", [&]<class T>() {
      kernels::sgd_update<T>(u.segments, settings, u.grad_scale, parameters().gradients().data<T>(),
                             pointer<T>(momentum_), parameters().weights().mutable_data<T>());
    });
  }

  SgdConfig config_;
  Tensor momentum_;
};

}  // namespace

config::Fields SgdConfig::fields() {
  using namespace config;
  return OptimizerOptions::fields() +
         Fields{field("momentum", &SgdConfig::momentum, "Share of the last step that goes on.",
                      at_least(0) & below(1)),
                field("dampening", &SgdConfig::dampening,
                      "Share of the gradient that stays out of the momentum.", between(0, 1)),
                field("nesterov", &SgdConfig::nesterov,
                      "Take the gradient once more, ahead along the momentum.")};
}

void SgdConfig::check(config::Problems& problems, const std::string& path) const {
  if (nesterov && (momentum == 0 || dampening != 0)) {
    problems.add(config::join(path, "nesterov"),
                 "needs a momentum above 0 and no dampening; got momentum {}, dampening {}",
                 momentum, dampening);
  }
  if (dampening != 0 && momentum == 0) {
    problems.add(config::join(path, "dampening"), "acts on nothing without a momentum");
  }
}

OptimizerPtr make_optimizer(const SgdConfig& config, FlatParametersPtr parameters) {
  return std::make_unique<Sgd>(config, std::move(parameters));
}

}  // namespace norma
