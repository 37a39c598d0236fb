#include "optim/rmsprop.h"

namespace norma {
namespace {

class Rmsprop final : public Optimizer {
 public:
  Rmsprop(const RmspropConfig& config, FlatParametersPtr parameters)
      : Optimizer(config, std::move(parameters)),
        config_(config),
        square_(add_buffer("second_moment")) {
    if (config.centered) mean_ = add_buffer("mean");
    if (config.momentum > 0) momentum_ = add_buffer("momentum");
  }

 private:
  void update(const Update& u) override {
    const auto settings = per_setting(u, [&](const StepSetting& s) {
      return kernels::RmspropSetting{s.lr, s.weight_decay, config_.alpha, config_.momentum,
                                     config_.eps};
    });
    dispatch_compute(parameters().dtype(), "rmsprop", [&]<class T>() {
      kernels::rmsprop_update<T>(u.segments, settings, u.grad_scale,
                                 parameters().gradients().data<T>(), pointer<T>(square_),
                                 pointer<T>(mean_), pointer<T>(momentum_),
                                 parameters().weights().mutable_data<T>());
    });
  }

  RmspropConfig config_;
  Tensor square_, mean_, momentum_;
};

}  // namespace

config::Fields RmspropConfig::fields() {
  using namespace config;
  return OptimizerOptions::fields() +
         Fields{
             field("alpha", &RmspropConfig::alpha, "Memory of the second moment.", between(0, 1)),
             field("eps", &RmspropConfig::eps, "Added to the root of the second moment.", above(0)),
             field("momentum", &RmspropConfig::momentum, "Share of the last step that goes on.",
                   at_least(0) & below(1)),
             field("centered", &RmspropConfig::centered,
                   "Divide by the deviation instead of the root mean square.")};
}

OptimizerPtr make_optimizer(const RmspropConfig& config, FlatParametersPtr parameters) {
  return std::make_unique<Rmsprop>(config, std::move(parameters));
}

}  // namespace norma
