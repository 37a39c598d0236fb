// Convolutions over the last one or two axes.
#pragma once

#include "core/config/config.h"
#include "layers/layer.h"

namespace norma {

struct ConvConfig {
  std::int64_t out = 0;
  std::int64_t kernel = 0;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  std::optional<std::int64_t> in;
  static config::Fields fields();
};

struct Conv1dConfig : ConvConfig {
  static constexpr const char* type = "conv1d";
  static constexpr const char* doc = "Convolution of channels over one axis.";
  static constexpr const char* source = "torch.nn.Conv1d";
  [[nodiscard]] LayerPtr build(const Scope& scope, const Signature& in) const;
};

struct Conv2dConfig : ConvConfig {
  static constexpr const char* type = "conv2d";
  static constexpr const char* doc = "Convolution of channels over two axes.";
  static constexpr const char* source = "torch.nn.Conv2d";
  [[nodiscard]] LayerPtr build(const Scope& scope, const Signature& in) const;
};

// Cross-correlation with zero padding, as PyTorch's convolutions.
// Shapes: x (N, C, L) or (N, C, H, W), weight (out, C / groups, kernel...), bias (out). Of
// sequences of features x is (N, T, C), and conv1d runs over T.
// Throws: if `groups` divides C or `out` not, or the kernel is larger than the padded input.
class Conv final : public Layer {
 public:
  Conv(const ConvConfig& config, int axes, const Scope& scope, const Signature& in);
  [[nodiscard]] Tensor forward(const Tensor& x, const Forward& pass) override;

 private:
  ConvConfig config_;
  int axes_;
  bool features_last_;
  Tensor weight_, bias_;
};

}  // namespace norma
