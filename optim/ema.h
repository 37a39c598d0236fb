// An exponential moving average of the weights.
#pragma once

#include <cstdint>
#include <vector>

#include "core/flat.h"

namespace norma {

// average <- decay average + (1 - decay) weights after every step; it starts as the weights.
// Source: torch.optim.swa_utils.get_ema_multi_avg_fn; Polyak and Juditsky 1992.
class Ema {
 public:
  // decay in [0, 1). Throws Error otherwise.
  Ema(double decay, FlatParametersPtr parameters);

  // Call after the optimizer's step.
  void update();
  // Exchanges the average and the weights: evaluate on the average, then swap back.
  void swap();
  // The averages under the parameters' names; shares memory. What load_state expects.
  [[nodiscard]] std::vector<NamedTensor> state() const;
  // Throws Error for a missing or unknown name, or another shape.
  void load_state(const std::vector<NamedTensor>& state);

 private:
  double decay_;
  FlatParametersPtr parameters_;
  Tensor average_;
};

// The weights are the average while this lives.
class EmaScope {
 public:
  explicit EmaScope(Ema* ema) : ema_(ema) {
    if (ema_) ema_->swap();
  }
  ~EmaScope() {
    if (ema_) ema_->swap();
  }
  EmaScope(const EmaScope&) = delete;
  EmaScope& operator=(const EmaScope&) = delete;

 private:
  Ema* ema_;
};

}  // namespace norma
