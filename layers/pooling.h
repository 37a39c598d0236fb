// Pooling over space, and flattening.
#pragma once

#include "core/config/config.h"
#include "layers/layer.h"

namespace norma {

struct FlattenConfig {
  static constexpr const char* type = "flatten";
  static constexpr const char* doc = "All axes of a sample as one.";
  static constexpr const char* source = "torch.nn.Flatten";
  static config::Fields fields() { return {}; }
  [[nodiscard]] LayerPtr build(const Scope& scope, const Signature& in) const;
};

}  // namespace norma
