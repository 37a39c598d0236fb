// DyT: tanh in the place of a norm. It takes no statistics.
#pragma once

#include "core/config/config.h"
#include "layers/layer.h"

namespace norma {

struct DytConfig {
  static constexpr const char* type = "dyt";
  static constexpr const char* doc = "gamma tanh(alpha x) + beta, alpha one learned number.";
  static constexpr const char* source = "Zhu et al. 2025, arXiv 2503.10622";
  double alpha = 0.5;
  static config::Fields fields();
  [[nodiscard]] LayerPtr build(const Scope& scope, const Signature& in) const;
};

// y = weight * tanh(alpha x) + bias.
// Shapes: x (..., n), alpha (1), weight and bias (n).
class Dyt final : public Layer {
 public:
  Dyt(const DytConfig& config, const Scope& scope, const Signature& in);
  [[nodiscard]] Tensor forward(const Tensor& x, const Forward& pass) override;

 private:
  Tensor alpha_, weight_, bias_;
};

}  // namespace norma
