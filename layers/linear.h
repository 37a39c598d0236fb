// Linear: y = x W^T + b.
#pragma once

#include "core/config/config.h"
#include "core/ops/linear.h"
#include "layers/layer.h"

namespace norma {

struct LinearConfig {
  static constexpr const char* type = "linear";
  static constexpr const char* doc = "y = x W^T + b over the last axis.";
  static constexpr const char* source = "torch.nn.Linear";
  std::int64_t out = 0;
  bool bias = true;
  std::optional<std::int64_t> in;
  static config::Fields fields();
  [[nodiscard]] LayerPtr build(const Scope& scope, const Signature& in) const;
};

// Shapes: x (..., in), weight (out, in), bias (out), result (..., out).
class Linear final : public Layer {
 public:
  struct Options {
    bool bias = true;
    ParameterKind::Role role = ParameterKind::matrix;
    bool features_last = false;
  };
  Linear(const Scope& scope, const Shape& in, std::int64_t out, const Options& options);
  [[nodiscard]] Tensor forward(const Tensor& x, const Forward& pass) override;
  [[nodiscard]] Tensor forward_onto(const Tensor& residual, const Tensor& x,
                                    const Forward& pass) override;
  // The product with the activation in its tiles.
  [[nodiscard]] Tensor forward(const Tensor& x, FusedActivation activation);
  [[nodiscard]] const Tensor& weight() const { return weight_; }
  [[nodiscard]] const Tensor& bias() const { return bias_; }  // undefined without one

 private:
  Tensor weight_, bias_;
};

}  // namespace norma
