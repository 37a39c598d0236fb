#include "layers/losses.h"

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

}  // namespace norma
