#include "layers/losses.h"

#include <algorithm>

#include "core/ops/arithmetic.h"
#include "core/ops/cast.h"

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

namespace {

void require_probabilities(const Tensor& target) {
  dispatch_compute(target.dtype(), "bce", [&]<class T>() {
    const T* t = target.data<T>();
    for (std::int64_t i = 0; i < target.numel(); ++i) {
      require(t[i] >= 0 && t[i] <= 1, "bce: expected targets in [0, 1], as probabilities; got {}",
              t[i]);
    }
  });
}

}  // namespace

std::int64_t LossConfig::count(const Shape& x, const Tensor& target) const {
  const auto* cross_entropy = get_if<CrossEntropyConfig>();
  if (!cross_entropy) return x.numel();
  const std::int64_t* t = target.data<std::int64_t>();
  return std::count_if(t, t + target.numel(),
                       [&](std::int64_t id) { return id != cross_entropy->ignore; });
}

// A loss is computed in f32 at least, and with targets of its type.
LossConfig::Operands LossConfig::operands(const Tensor& x, const Tensor& target) {
  const Tensor wide = is_half(x.dtype()) ? to(x, DType::f32) : x;
  return {wide, is_floating(target.dtype()) ? to(target, wide.dtype()) : target};
}

Tensor LossConfig::apply(const Tensor& x, const Tensor& target) const {
  const Operands of = operands(x, target);
  if (get_if<BceConfig>()) require_probabilities(of.targets);
  return visit([&](const auto& loss) { return loss.apply(of.outputs, of.targets); });
}

Tensor LossConfig::sum(const Tensor& x, const Tensor& target) const {
  const auto [outputs, targets] = operands(x, target);
  if (const auto* config = get_if<CrossEntropyConfig>()) {
    return cross_entropy_sum(outputs, targets, config->options()).sum;
  }
  return apply(outputs, targets) * static_cast<double>(x.numel());
}

}  // namespace norma
