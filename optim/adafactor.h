// Adafactor.
#pragma once

#include <array>
#include <optional>

#include "core/config/config.h"
#include "optim/optimizer.h"

namespace norma {

// The second moment of a matrix is kept as the means of its rows and columns. In step t, with
// rms(x) = |x| / sqrt(number of elements):
//   part = t^beta2_decay;  row, col <- their means of g^2, blended in by `part`;
//   v = row col / mean(row), or the whole moment of a vector;  u = g / sqrt(max(v, eps1^2));
//   w <- (1 - lr weight_decay) w - max(eps2, rms(w)) min(lr, 1 / sqrt(t)) u / max(1, rms(u) / d).
// The decay is decoupled. eps[0] (null: the machine's) bounds the moment below the root, eps[1] the
// size of the weights that the rate is relative to. Source: torch.optim.Adafactor; Shazeer and
// Stern 2018.
struct AdafactorConfig : OptimizerOptions {
  static constexpr const char* type = "adafactor";
  static constexpr const char* doc = "Second moments of matrices kept as rows and columns.";
  static constexpr const char* source = "torch.optim.Adafactor; Shazeer and Stern 2018";
  double beta2_decay = -0.8;
  std::array<std::optional<double>, 2> eps = {std::nullopt, 1e-3};
  double d = 1;
  AdafactorConfig() { lr = 1e-2; }
  static config::Fields fields();
  void check(config::Problems& problems, const std::string& path) const;
};

[[nodiscard]] OptimizerPtr make_optimizer(const AdafactorConfig& config,
                                          FlatParametersPtr parameters);

}  // namespace norma
