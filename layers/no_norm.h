// The norm that does nothing, so that "no norm" is a choice like the others.
#pragma once

#include "core/config/config.h"
#include "layers/layer.h"

namespace norma {

struct NoNormConfig {
  static constexpr const char* type = "none";
  static constexpr const char* doc = "No norm: y = x.";
  static constexpr const char* source = "the control";
  static config::Fields fields() { return {}; }
  [[nodiscard]] LayerPtr build(const Scope& scope, const Signature& in) const;
};

class NoNorm final : public Layer {
 public:
  using Layer::Layer;
  [[nodiscard]] Tensor forward(const Tensor& x, const Forward&) override { return x; }
};

}  // namespace norma
