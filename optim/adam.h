// Adam, and what its relatives share.
#pragma once

#include <array>
#include <string_view>

#include "core/config/config.h"
#include "optim/optimizer.h"

namespace norma {

// What the second moment holds before the first step: 0, or the square of the first gradient, from
// which the bias corrections (kept) make a warm-up of its own.
// Source: Kalra and Barkeshli 2024 (GI-Adam).
enum class SecondMomentInit { zero, first_gradient };
constexpr auto config_names(SecondMomentInit) {
  return std::to_array<std::string_view>({"zero", "first_gradient"});
}

// The fields of Adam and AdamW.
struct AdamOptions : OptimizerOptions {
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  bool amsgrad = false;
  SecondMomentInit v_init = SecondMomentInit::zero;
  static config::Fields fields();
};

// With g the gradient plus weight_decay * w, in step t:
//   m <- m + (1 - beta1)(g - m);  v <- beta2 v + (1 - beta2) g^2;
//   w <- w - lr m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps).
// With amsgrad the largest v so far takes the place of v. The decay is an L2 penalty, not
// decoupled; eps stands outside of the root, behind the bias correction. Source: torch.optim.Adam;
// Kingma and Ba 2015; Reddi et al. 2018.
struct AdamConfig : AdamOptions {
  static constexpr const char* type = "adam";
  static constexpr const char* doc = "Adaptive moments; weight decay as an L2 penalty.";
  static constexpr const char* source = "torch.optim.Adam; Kingma and Ba 2015";
};

[[nodiscard]] OptimizerPtr make_optimizer(const AdamConfig& config, FlatParametersPtr parameters);

// Optimizers that keep a first and a second moment; a relative says which numbers a step takes.
class AdamFamily : public Optimizer {
 protected:
  AdamFamily(const OptimizerOptions& options, FlatParametersPtr parameters, bool amsgrad = false);
  [[nodiscard]] virtual kernels::AdamSetting numbers(const StepSetting& s) const = 0;

 private:
  void update(const Update& u) final;

  Tensor first_, second_, largest_;
};

// The numbers of Adam in step s.step; `decoupled` for AdamW.
[[nodiscard]] kernels::AdamSetting adam_numbers(const AdamOptions& options, double lr,
                                                double weight_decay, std::int64_t step,
                                                bool decoupled);

}  // namespace norma
