#include "optim/schedule.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace norma {
namespace {

std::int64_t resolve_warmup(const WarmupOptions& warmup, const RunLength& run) {
  if (warmup.warmup_steps) return *warmup.warmup_steps;
  if (warmup.warmup_fraction) {
    return std::llround(*warmup.warmup_fraction * static_cast<double>(run.total_steps));
  }
  if (!warmup.warmup_tokens) return 0;
  require(run.tokens_per_step > 0,
          "schedule: warmup_tokens needs data that consist of tokens; use warmup_steps");
  return (*warmup.warmup_tokens + run.tokens_per_step - 1) / run.tokens_per_step;
}

}  // namespace

config::Fields WarmupOptions::fields() {
  using namespace config;
  return {
      field("warmup_steps", &WarmupOptions::warmup_steps,
            "Steps over which the rate rises from lr / warmup_steps to lr.", at_least(0),
            also_called("warmup warmup_iters num_warmup_steps")),
      field("warmup_fraction", &WarmupOptions::warmup_fraction,
            "The same as a fraction of all steps.", between(0, 1)),
      field("warmup_tokens", &WarmupOptions::warmup_tokens, "The same in tokens.", at_least(0))};
}

void WarmupOptions::check(config::Problems& problems, const std::string& path) const {
  const int given = (warmup_steps ? 1 : 0) + (warmup_fraction ? 1 : 0) + (warmup_tokens ? 1 : 0);
  if (given > 1) {
    problems.add(path, "expected one of warmup_steps, warmup_fraction, warmup_tokens; got {}",
                 given);
  }
}

Schedule::Schedule(double lr, const RunLength& run, const WarmupOptions& warmup)
    : lr_(lr), total_(run.total_steps) {
  require(std::isfinite(lr) && lr >= 0, "schedule: lr must be at least 0; got {}", lr);
  require(total_ >= 0, "schedule: a run has at least 0 steps; got {}", total_);
  warmup_ = resolve_warmup(warmup, run);
  require(warmup_ >= 0, "schedule: warmup_steps must be at least 0; got {}", warmup_);
}

double Schedule::factor(std::int64_t t) const {
  if (t < warmup_) return static_cast<double>(t + 1) / static_cast<double>(warmup_);
  const double length = static_cast<double>(std::max<std::int64_t>(1, total_ - warmup_));
  return shape(t, std::clamp(static_cast<double>(t - warmup_) / length, 0.0, 1.0));
}

double Schedule::rate(std::int64_t t) const {
  require(t >= 0, "schedule: steps count from 0; got {}", t);
  return lr_ * factor(t);
}

std::string Schedule::warning() const {
  if (warmup_ <= total_) return {};
  return fmt::format(
      "schedule: the warm-up of {} steps is longer than the run of {}; lr {} is never reached",
      warmup_, total_, lr_);
}

}  // namespace norma
