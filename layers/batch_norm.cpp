#include "layers/batch_norm.h"

#include "core/ops/masked_norm.h"
#include "core/ops/movement.h"
#include "layers/channels.h"

namespace norma {

config::Fields BatchNormConfig::fields() {
  using namespace config;
  return ChannelNormOptions::fields() +
         Fields{field("masked", &BatchNormConfig::masked,
                      "Leave the padding of sequences out of the statistics; false: it takes part, "
                      "as in torch.nn.BatchNorm1d, which knows of none.")};
}

LayerPtr BatchNormConfig::build(const Scope& scope, const Signature& in) const {
  return std::make_unique<BatchNorm>(*this, scope, in);
}

Tensor BatchNorm::forward(const Tensor& x, const Forward& pass) {
  const BatchNormOptions options{.eps = eps_, .training = training(), .momentum = momentum_};
  if (masked_ && pass.mask.defined() && x.rank() == 3) {
    const Tensor tokens = features_last_ ? x : transpose(x);  // (B, T, C)
    const Tensor y = masked_batch_norm(tokens_as_samples(tokens), flatten(pass.mask), weight_,
                                       bias_, options, statistics_);
    return features_last_ ? reshape(y, x.shape()) : transpose(reshape(y, tokens.shape()));
  }
  if (!features_last_) return batch_norm(x, weight_, bias_, options, statistics_);
  return reshape(batch_norm(tokens_as_samples(x), weight_, bias_, options, statistics_), x.shape());
}

}  // namespace norma
