// LayerNorm: statistics over the last axes of one sample or token.
#pragma once

#include "core/config/config.h"
#include "layers/layer.h"
#include "layers/statistics.h"

namespace norma {

struct LayerNormConfig {
  static constexpr const char* type = "layer_norm";
  static constexpr const char* doc = "Over the features of one sample or token.";
  static constexpr const char* source = "Ba et al. 2016, arXiv 1607.06450; torch.nn.LayerNorm";
  double eps = 1e-5;
  bool affine = true;
  bool bias = true;
  std::vector<std::int64_t> shape;
  Statistics statistics = Statistics::f32;
  [[nodiscard]] bool per_token() const { return shape.size() <= 1; }
  static config::Fields fields();
  [[nodiscard]] LayerPtr build(const Scope& scope, const Signature& in) const;
};

// y = weight * (x - mean) / sqrt(var + eps) + bias, mean and biased var over the axes of `shape`.
// Shapes: x (..., *shape), weight and bias `shape` (the last axis where `shape` is not given).
// Throws: if `shape` is not the end of the input's shape.
class LayerNorm final : public Layer {
 public:
  LayerNorm(const LayerNormConfig& config, const Scope& scope, const Signature& in);
  [[nodiscard]] Tensor forward(const Tensor& x, const Forward& pass) override;

 private:
  double eps_;
  Statistics statistics_;
  int axes_;
  Tensor weight_, bias_;
};

}  // namespace norma
