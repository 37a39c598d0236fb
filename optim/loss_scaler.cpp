#include "optim/loss_scaler.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace norma {
namespace {

// The least scale, however many steps fail: f32 holds its inverse, and a resume takes it.
constexpr double kSmallest = 0x1p-126;

}  // namespace

LossScaler::LossScaler(double scale, bool dynamic) : scale_(scale), dynamic_(dynamic) {
  require(std::isfinite(scale) && scale > 0, "loss_scale: expected a number above 0; got {}",
          scale);
}

bool LossScaler::update(bool gradients_finite) {
  if (!dynamic_) return gradients_finite;
  if (!gradients_finite) {
    scale_ = std::max(scale_ / 2, kSmallest);
    good_steps_ = 0;
  } else if (++good_steps_ == kGrowthInterval) {
    scale_ = std::min(scale_ * 2, kLargest);
    good_steps_ = 0;
  }
  return gradients_finite;
}

void LossScaler::load_state(const State& state) {
  require(std::isfinite(state.scale) && state.scale > 0,
          "loss_scale: expected a saved scale above 0; got {}", state.scale);
  scale_ = state.scale;
  good_steps_ = state.good_steps;
}

}  // namespace norma
