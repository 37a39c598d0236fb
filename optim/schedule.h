// The base of all schedules: warm-up, then a shape.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/config/config.h"

namespace norma {

// Warm-up: at most one of the three. All absent: none.
struct WarmupOptions {
  std::optional<std::int64_t> warmup_steps;
  std::optional<double> warmup_fraction;      // of the run's steps, rounded to the nearest
  std::optional<std::int64_t> warmup_tokens;  // divided by the tokens of a step, rounded up
  static config::Fields fields();
  void check(config::Problems& problems, const std::string& path) const;
};

// What the length of the run gives to a schedule.
struct RunLength {
  std::int64_t total_steps = 0;      // T, at least 0
  std::int64_t tokens_per_step = 0;  // 0 where the data have no tokens
};

// The rate at optimizer step t = 0, 1, ... of T: a pure function of t, so that resuming needs no
// state. With W steps of warm-up and p = clamp((t - W) / max(1, T - W), 0, 1),
//   rate(t) = lr * ((t + 1) / W while t < W, else shape(t, p)).
// Beyond the end it stays at its last value. A run that is resumed with another T follows the new
// formula from there on.
class Schedule {
 public:
  virtual ~Schedule() = default;
  // Throws Error for t below 0.
  [[nodiscard]] double rate(std::int64_t t) const;
  [[nodiscard]] std::int64_t warmup_steps() const { return warmup_; }
  [[nodiscard]] std::int64_t total_steps() const { return total_; }
  // What is odd about the schedule, to be shown before the run; empty if nothing is.
  [[nodiscard]] virtual std::string warning() const;

 protected:
  // Throws Error for a length below 0, a rate that is not finite or below 0, and warmup_tokens
  // where a step has no tokens.
  Schedule(double lr, const RunLength& run, const WarmupOptions& warmup);
  // The factor after the warm-up.
  [[nodiscard]] virtual double shape(std::int64_t t, double p) const = 0;
  // The factor at any step; replaced by schedules whose warm-up is part of their formula.
  [[nodiscard]] virtual double factor(std::int64_t t) const;

 private:
  double lr_;
  std::int64_t total_;
  std::int64_t warmup_ = 0;
};

using SchedulePtr = std::unique_ptr<Schedule>;

// The field `final_factor` of the schedules that decay: their last rate by the first.
template <class T>
[[nodiscard]] config::Field final_factor_field() {
  return config::field("final_factor", &T::final_factor, "The last rate, as a share of lr.",
                       config::between(0, 1));
}

}  // namespace norma
