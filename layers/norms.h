// The norms: one formula, one list.
//
//   y = gamma * (x - mean) / sqrt(var + eps) + beta
//
//   norm            mean and var over                         one gamma, beta per   kernel
//   batch_norm      the batch and space, a channel            channel               channels
//   layer_norm      the last axes, a sample or token          element               rows
//   group_norm      a group of channels and space, a sample   channel               rows
//   instance_norm   space, a sample and channel               channel               rows
//   rms_norm        as layer_norm, but mean = 0, beta = 0     element               rows
//   scale_norm      as rms_norm, without eps in the root      one in all            none: four ops
//
// and what takes no statistics: dyt and derf (a bounded curve), none (y = x).
//
// core/ops/norm_rows.h and core/ops/norm_channels.h compute it; see Note [One formula] in the
// first. To add a norm: a file pair like layers/scale_norm.{h,cpp}, the smallest one, and its name
// in NormConfigs below. The configuration, the schema, the documentation, `norma list`, the models
// and the tests that run over every norm follow.
#pragma once

#include "layers/batch_norm.h"
#include "layers/derf.h"
#include "layers/dyt.h"
#include "layers/group_norm.h"
#include "layers/instance_norm.h"
#include "layers/layer_norm.h"
#include "layers/no_norm.h"
#include "layers/rms_norm.h"
#include "layers/scale_norm.h"

namespace norma {

using NormConfigs =
    config::TypeList<LayerNormConfig, RmsNormConfig, BatchNormConfig, GroupNormConfig,
                     InstanceNormConfig, ScaleNormConfig, DytConfig, DerfConfig, NoNormConfig>;

struct NormConfig : config::OneOf<NormConfigs> {
  static constexpr const char* family = "norm";
  static constexpr const char* family_doc =
      "y = gamma * (x - mean) / sqrt(var + eps) + beta, over different axes.";
  using OneOf::OneOf;

  [[nodiscard]] LayerPtr build(const Scope& scope, const Signature& in) const {
    return visit([&](const auto& norm) { return norm.build(scope, in); });
  }
  // True iff in evaluation, inside a transformer, a token's output depends on no other token. A
  // norm of which that is not always true says so in a member of this name.
  [[nodiscard]] bool per_token() const {
    return visit([](const auto& norm) {
      if constexpr (requires { norm.per_token(); }) return norm.per_token();
      return true;
    });
  }
};

}  // namespace norma
