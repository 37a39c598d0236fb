// The list of all layers that a configuration can name, and the residual layer made of them.
//
// To add a layer: a file pair like layers/dropout.{h,cpp}, and its name in LayerConfig.
#pragma once

#include "layers/activations.h"
#include "layers/attention.h"
#include "layers/conv.h"
#include "layers/dropout.h"
#include "layers/embedding.h"
#include "layers/linear.h"
#include "layers/norms.h"
#include "layers/pooling.h"
#include "layers/recurrent.h"

namespace norma {

struct LayerConfig;

struct ResidualConfig {
  static constexpr const char* type = "residual";
  static constexpr const char* doc = "shortcut(x) + body(x); the shortcut is x where empty.";
  static constexpr const char* source = "He et al. 2015, arXiv 1512.03385";
  std::vector<LayerConfig> body;
  std::vector<LayerConfig> shortcut;
  static config::Fields fields();
  [[nodiscard]] LayerPtr build(const Scope& scope, const Signature& in) const;
};

struct LayerConfig
    : config::OneOf<LinearConfig, Conv1dConfig, Conv2dConfig, MaxPool2dConfig, AvgPool2dConfig,
                    GlobalAvgPoolConfig, FlattenConfig, EmbeddingConfig, DropoutConfig, NormConfigs,
                    ActivationConfigs, ResidualConfig, AttentionConfig, LstmConfig, GruConfig> {
  static constexpr const char* family = "layer";
  static constexpr const char* family_doc = "A part of a sequential model.";
  using OneOf::OneOf;

  // Throws the layer's own error.
  [[nodiscard]] LayerPtr build(const Scope& scope, const Signature& in) const;
};

// Layers one behind the other, named by their place: "0", "1", ...
class Layers : public Layer {
 public:
  // Throws the error of the layer that does not fit, with its place below `scope`.
  Layers(const std::vector<LayerConfig>& layers, const Scope& scope, const Signature& in);
  [[nodiscard]] Tensor forward(const Tensor& x, const Forward& pass) override;

 private:
  struct Built {
    std::vector<LayerPtr> layers;
    Signature output;
  };
  Layers(Built built, const Scope& scope);
  static Built build_all(const std::vector<LayerConfig>& layers, const Scope& scope,
                         const Signature& in);
  std::vector<LayerPtr> layers_;
};

}  // namespace norma
