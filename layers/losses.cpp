#include "layers/losses.h"

#include <algorithm>

#include "core/ops/arithmetic.h"

namespace norma {

using config::field;

config::Fields CrossEntropyConfig::fields() {
  return {
      field("label_smoothing", &CrossEntropyConfig::label_smoothing,
            "Share of the target that is spread over all classes.", config::between(0, 1)),
      field("z_loss", &CrossEntropyConfig::z_loss,
            "Factor on logsumexp(x)^2, which keeps the logits from drifting.", config::at_least(0)),
      field("ignore", &CrossEntropyConfig::ignore, "Targets of this value do not count.")};
}

config::Fields HuberConfig::fields() {
  return {
      field("delta", &HuberConfig::delta, "Where the square turns into a line.", config::above(0))};
}

std::int64_t LossConfig::count(const Shape& x, const Tensor& target) const {
  const auto* cross_entropy = get_if<CrossEntropyConfig>();
  if (!cross_entropy) return x.numel();
  const std::int64_t* t = target.data<std::int64_t>();
  return std::count_if(t, t + target.numel(),
                       [&](std::int64_t id) { return id != cross_entropy->ignore; });
}

Tensor LossConfig::sum(const Tensor& x, const Tensor& target) const {
  if (const auto* config = get_if<CrossEntropyConfig>()) {
    return cross_entropy_sum(x, target, config->options()).sum;
  }
  return apply(x, target) * static_cast<double>(x.numel());
}

}  // namespace norma
