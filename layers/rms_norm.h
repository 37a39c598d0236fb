// RMSNorm: as LayerNorm, without the mean and the bias.
#pragma once

#include "core/config/config.h"
#include "core/ops/norm_rows.h"
#include "layers/layer.h"
#include "layers/statistics.h"

namespace norma {

constexpr auto config_names(GainCast) {
  return std::to_array<std::string_view>({"after_gain", "before_gain"});
}

struct RmsNormConfig {
  static constexpr const char* type = "rms_norm";
  static constexpr const char* doc = "Over the features of one sample or token, without the mean.";
  static constexpr const char* source = "Zhang & Sennrich 2019, arXiv 1910.07467";
  double eps = 1e-6;
  bool affine = true;
  bool unit_offset = false;
  double p = 1;
  GainCast cast = GainCast::after_gain;
  Statistics statistics = Statistics::f32;
  static config::Fields fields();
  [[nodiscard]] LayerPtr build(const Scope& scope, const Signature& in) const;
};

// y = weight * x / sqrt(mean of the first ceil(n p) squares + eps); 1 + weight with `unit_offset`.
// Shapes: x (..., n), weight (n).
class RmsNorm final : public Layer {
 public:
  RmsNorm(const RmsNormConfig& config, const Scope& scope, const Signature& in);
  [[nodiscard]] Tensor forward(const Tensor& x, const Forward& pass) override;

 private:
  RmsNormOptions options_;
  Tensor weight_;
};

}  // namespace norma
