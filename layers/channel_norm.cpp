#include "layers/channel_norm.h"

#include "layers/channels.h"

namespace norma {

config::Fields ChannelNormOptions::fields() {
  using namespace config;
  using C = ChannelNormOptions;
  return {field("eps", &C::eps, "Added to the variance, inside the root.", at_least(0)),
          field("momentum", &C::momentum,
                "Weight of the newest batch in the running statistics; null: the plain average.",
                at_least(0), at_most(1)),
          field("affine", &C::affine, "Learn a gain and a bias a channel."),
          field("track", &C::track, "Keep running statistics, used in evaluation.")};
}

ChannelNorm::ChannelNorm(const char* name, const ChannelNormOptions& options, const Scope& scope,
                         const Signature& in)
    : Layer(scope, in),
      eps_(options.eps),
      momentum_(options.momentum),
      features_last_(in.features_last) {
  const std::int64_t channels = channels_of(name, in);
  if (options.affine) {
    weight_ =
        parameter(scope, "weight", Shape{channels}, {.role = ParameterKind::constant, .value = 1});
    bias_ =
        parameter(scope, "bias", Shape{channels}, {.role = ParameterKind::constant, .value = 0});
  }
  if (options.track) {
    statistics_ =
        make_running_statistics(channels, is_half(scope.dtype()) ? DType::f32 : scope.dtype());
    buffer("running_mean", statistics_.mean);
    buffer("running_var", statistics_.var);
    buffer("num_batches_tracked", statistics_.batches);
  }
}

}  // namespace norma
