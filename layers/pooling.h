// Pooling over space, and flattening.
#pragma once

#include "core/config/config.h"
#include "layers/layer.h"

namespace norma {

struct PoolConfig {
  std::int64_t kernel = 2;
  std::optional<std::int64_t> stride;
  std::int64_t padding = 0;
  static config::Fields fields();
};

struct MaxPool2dConfig : PoolConfig {
  static constexpr const char* type = "max_pool2d";
  static constexpr const char* doc = "The largest of each window; the first one gets the gradient.";
  static constexpr const char* source = "torch.nn.MaxPool2d";
  [[nodiscard]] LayerPtr build(const Scope& scope, const Signature& in) const;
};

struct AvgPool2dConfig : PoolConfig {
  static constexpr const char* type = "avg_pool2d";
  static constexpr const char* doc = "The mean of each window; padding counts as zeros.";
  static constexpr const char* source = "torch.nn.AvgPool2d";
  [[nodiscard]] LayerPtr build(const Scope& scope, const Signature& in) const;
};

struct GlobalAvgPoolConfig {
  static constexpr const char* type = "global_avg_pool";
  static constexpr const char* doc = "The mean of each channel over space: (C, H, W) to (C).";
  static constexpr const char* source = "Lin et al. 2013; torch.nn.AdaptiveAvgPool2d(1)";
  static config::Fields fields() { return {}; }
  [[nodiscard]] LayerPtr build(const Scope& scope, const Signature& in) const;
};

struct FlattenConfig {
  static constexpr const char* type = "flatten";
  static constexpr const char* doc = "All axes of a sample as one.";
  static constexpr const char* source = "torch.nn.Flatten";
  static config::Fields fields() { return {}; }
  [[nodiscard]] LayerPtr build(const Scope& scope, const Signature& in) const;
};

}  // namespace norma
