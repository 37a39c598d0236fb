// ScaleNorm: every sample or token on a sphere whose radius is learned. The smallest norm here.
#pragma once

#include "core/config/config.h"
#include "layers/layer.h"

namespace norma {

struct ScaleNormConfig {
  static constexpr const char* type = "scale_norm";
  static constexpr const char* doc = "One sample or token, divided by its length; one gain in all.";
  static constexpr const char* source = "Nguyen & Salazar 2019, arXiv 1910.05895";
  double eps = 1e-5;
  static config::Fields fields();
  [[nodiscard]] LayerPtr build(const Scope& scope, const Signature& in) const;
};

// y = weight * x / max(|x|, eps), |x| the length of the last axis. weight (1) starts at sqrt(n).
// Shapes: x (..., n).
class ScaleNorm final : public Layer {
 public:
  ScaleNorm(const ScaleNormConfig& config, const Scope& scope, const Signature& in);
  [[nodiscard]] Tensor forward(const Tensor& x, const Forward& pass) override;

 private:
  double eps_;
  Tensor weight_;
};

}  // namespace norma
