// Derf: erf in the place of a norm. It takes no statistics.
#pragma once

#include "core/config/config.h"
#include "layers/layer.h"

namespace norma {

struct DerfConfig {
  static constexpr const char* type = "derf";
  static constexpr const char* doc =
      "gamma erf(alpha x + shift) + beta, alpha and shift one learned number each.";
  static constexpr const char* source = "Chen et al. 2025, arXiv 2512.10938";
  double alpha = 0.5;
  static config::Fields fields();
  [[nodiscard]] LayerPtr build(const Scope& scope, const Signature& in) const;
};

// y = weight * erf(alpha x + shift) + bias.
// Shapes: x (..., n), alpha and shift (1), weight and bias (n).
class Derf final : public Layer {
 public:
  Derf(const DerfConfig& config, const Scope& scope, const Signature& in);
  [[nodiscard]] Tensor forward(const Tensor& x, const Forward& pass) override;

 private:
  Tensor alpha_, shift_, weight_, bias_;
};

}  // namespace norma
