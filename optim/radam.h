// Rectified Adam.
#pragma once

#include "optim/adam.h"

namespace norma {

// Adam whose quotient is used only once the second moment rests on enough steps:
//   rho_inf = 2 / (1 - beta2) - 1;  rho = rho_inf - 2 t beta2^t / (1 - beta2^t);
//   rho > 5: w <- w - lr r m^ sqrt(1 - beta2^t) / (sqrt(v) + eps), with
//   r = sqrt((rho - 4)(rho - 2) rho_inf / ((rho_inf - 4)(rho_inf - 2) rho));
//   else w <- w - lr m^, m^ being m / (1 - beta1^t).
// m and v are Adam's. As torch has it, eps is added to sqrt(v) before the bias correction; the
// paper takes rho > 4, a step earlier for beta2 = 0.999. The decay is an L2 penalty, not
// decoupled. Source: torch.optim.RAdam; Liu et al. 2020.
struct RAdamConfig : OptimizerOptions {
  static constexpr const char* type = "radam";
  static constexpr const char* doc =
      "Adam that starts without the second moment and rectifies its variance.";
  static constexpr const char* source = "torch.optim.RAdam; Liu et al. 2020";
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  static config::Fields fields();
};

[[nodiscard]] OptimizerPtr make_optimizer(const RAdamConfig& config, FlatParametersPtr parameters);

}  // namespace norma
