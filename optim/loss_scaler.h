// The factor that keeps gradients within the range of f16.
#pragma once

#include <cstdint>

namespace norma {

// The loss is multiplied by scale() before backward, and the gradients by 1 / scale() after it.
// Dynamic: a step whose gradients are not finite is skipped and halves the scale; after
// kGrowthInterval good steps in a row it doubles. Source: torch.amp.GradScaler, whose constants
// these are; Micikevicius et al. 2018.
class LossScaler {
 public:
  static constexpr double kFirst = 65536;
  static constexpr std::int64_t kGrowthInterval = 2000;  // steps
  static constexpr double kLargest = 0x1p127;            // f32 holds it

  // A scale that changes by itself.
  [[nodiscard]] static LossScaler dynamic(double first = kFirst) { return LossScaler(first, true); }
  // One that stays. Throws Error unless it is finite and above 0.
  [[nodiscard]] static LossScaler fixed(double scale) { return LossScaler(scale, false); }

  [[nodiscard]] double scale() const { return scale_; }
  [[nodiscard]] bool is_dynamic() const { return dynamic_; }
  // Tells how the step went. True iff the parameters may be updated.
  bool update(bool gradients_finite);

  // All that the next step depends on.
  struct State {
    double scale = kFirst;
    std::int64_t good_steps = 0;
    bool operator==(const State&) const = default;
  };
  [[nodiscard]] State state() const { return {scale_, good_steps_}; }
  void load_state(const State& state);

 private:
  LossScaler(double scale, bool dynamic);

  double scale_;
  bool dynamic_;
  std::int64_t good_steps_ = 0;
};

}  // namespace norma
