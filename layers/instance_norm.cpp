#include "layers/instance_norm.h"

#include <algorithm>

#include "core/ops/masked_norm.h"
#include "core/ops/movement.h"
#include "core/ops/norm_rows.h"
#include "layers/channels.h"

namespace norma {

InstanceNorm::InstanceNorm(const InstanceNormConfig& config, const Scope& scope,
                           const Signature& in)
    : ChannelNorm("instance_norm", config, scope, in) {
  require(
      in.shape.rank() >= 2,
      "instance_norm: expected channels and space, (C, L) or (C, H, W); got samples of shape {}",
      in.shape);
  const std::int64_t space =
      in.shape.numel() / std::max<std::int64_t>(1, channels_of("instance_norm", in));
  require(
      space != 1,
      "instance_norm: expected more than one value a channel to take statistics of; got samples "
      "of shape {}; take layer_norm or group_norm",
      in.shape);
}

LayerPtr InstanceNormConfig::build(const Scope& scope, const Signature& in) const {
  return std::make_unique<InstanceNorm>(*this, scope, in);
}

Tensor InstanceNorm::forward(const Tensor& x, const Forward& pass) {
  const InstanceNormOptions options{.eps = eps_, .training = training(), .momentum = momentum_};
  if (pass.mask.defined() && x.rank() == 3) {
    const auto normed = [&](const Tensor& tokens) {  // (B, T, C)
      return masked_instance_norm(tokens, pass.mask, weight_, bias_, options, statistics_);
    };
    return features_last_ ? normed(x) : transpose(normed(transpose(x)));
  }
  if (!features_last_) return instance_norm(x, weight_, bias_, options, statistics_);
  return transpose(instance_norm(transpose(x), weight_, bias_, options, statistics_));
}

}  // namespace norma
