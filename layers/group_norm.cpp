#include "layers/group_norm.h"

#include "core/config/sizes.h"
#include "core/ops/movement.h"
#include "core/ops/norm_rows.h"
#include "layers/channels.h"

namespace norma {

config::Fields GroupNormConfig::fields() {
  using namespace config;
  return {
      field("groups", &GroupNormConfig::groups, "Groups of channels; must divide them.", a_size()),
      field("eps", &GroupNormConfig::eps, "Added to the variance, inside the root.", at_least(0)),
      field("affine", &GroupNormConfig::affine, "Learn a gain and a bias a channel.")};
}

LayerPtr GroupNormConfig::build(const Scope& scope, const Signature& in) const {
  return std::make_unique<GroupNorm>(*this, scope, in);
}

GroupNorm::GroupNorm(const GroupNormConfig& config, const Scope& scope, const Signature& in)
    : Layer(scope, in), groups_(config.groups), eps_(config.eps), features_last_(in.features_last) {
  const std::int64_t channels = channels_of("group_norm", in);
  require(channels % groups_ == 0, "group_norm: {} groups do not divide {} channels", groups_,
          channels);
  if (!config.affine) return;
  weight_ =
      parameter(scope, "weight", Shape{channels}, {.role = ParameterKind::constant, .value = 1});
  bias_ = parameter(scope, "bias", Shape{channels}, {.role = ParameterKind::constant, .value = 0});
}

Tensor GroupNorm::forward(const Tensor& x, const Forward&) {
  const GroupNormOptions options{.groups = groups_, .eps = eps_};
  if (!features_last_) return group_norm(x, weight_, bias_, options);
  return reshape(group_norm(tokens_as_samples(x), weight_, bias_, options), x.shape());
}

}  // namespace norma
