// GroupNorm: statistics over a group of channels and space, a sample.
#pragma once

#include "core/config/config.h"
#include "layers/layer.h"

namespace norma {

struct GroupNormConfig {
  static constexpr const char* type = "group_norm";
  static constexpr const char* doc = "Over a group of channels and space, for each sample.";
  static constexpr const char* source = "Wu & He 2018, arXiv 1803.08494; torch.nn.GroupNorm";
  std::int64_t groups = 8;
  double eps = 1e-5;
  bool affine = true;
  static config::Fields fields();
  [[nodiscard]] LayerPtr build(const Scope& scope, const Signature& in) const;
};

// y = weight * (x - mean) / sqrt(var + eps) + bias, mean and biased var over (C / groups, space).
// Shapes: x (N, C, ...), weight and bias (C). Inside a transformer x is (B, T, C), and a group is
// of the features of one token. Throws: if `groups` does not divide the channels.
class GroupNorm final : public Layer {
 public:
  GroupNorm(const GroupNormConfig& config, const Scope& scope, const Signature& in);
  [[nodiscard]] Tensor forward(const Tensor& x, const Forward& pass) override;

 private:
  std::int64_t groups_;
  double eps_;
  bool features_last_;
  Tensor weight_, bias_;
};

}  // namespace norma
