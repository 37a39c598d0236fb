// The section `train`: how long, how much at a time, and what is written down on the way.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "core/config/config.h"
#include "core/dtype.h"
#include "optim/loss_scaler.h"

namespace norma {

enum class Precision { f32, bf16, f16, f64 };
constexpr auto config_names(Precision) {
  return std::to_array<std::string_view>({"f32", "bf16", "f16", "f64"});
}

enum class LossScale { dynamic };
constexpr auto config_names(LossScale) { return std::to_array<std::string_view>({"dynamic"}); }

// Which number of an evaluation tells the best checkpoint.
enum class BestBy { loss, accuracy };
constexpr auto config_names(BestBy) {
  return std::to_array<std::string_view>({"loss", "accuracy"});
}

enum class OnDivergence { stop, continue_ };
constexpr auto config_names(OnDivergence) {
  return std::to_array<std::string_view>({"stop", "continue"});
}

// The key `stop_above`: when a run has failed to learn, and stops.
struct StopAboveConfig {
  double loss = 0;
  std::int64_t after = 0;
  std::int64_t steps = 50;

  static config::Fields fields();
};

// Which of the two calls, train() and eval(), a run makes. All but `right` are mistakes, for study.
enum class Modes { right, forget_eval, forget_train };
constexpr auto config_names(Modes) {
  return std::to_array<std::string_view>({"right", "forget_eval", "forget_train"});
}

struct TrainConfig {
  std::optional<std::int64_t> steps;
  std::optional<std::int64_t> epochs;
  std::int64_t batch = 32;
  std::int64_t accumulate = 1;
  std::optional<double> clip_norm;
  std::optional<double> clip_value;
  Precision precision = Precision::f32;
  std::variant<LossScale, double> loss_scale = LossScale::dynamic;
  std::optional<std::int64_t> eval_every;
  std::optional<std::int64_t> eval_batches;
  std::optional<std::int64_t> checkpoint_every;
  std::int64_t keep = 3;
  BestBy best = BestBy::loss;
  std::optional<std::int64_t> early_stop;
  std::int64_t log_every = 10;
  bool log_logits = false;
  std::optional<std::int64_t> probe_every;
  bool probe_sharpness = false;
  bool probe_rounding = false;
  std::optional<double> ema;
  bool recompute = false;
  Modes modes = Modes::right;
  OnDivergence on_divergence = OnDivergence::stop;
  std::int64_t max_skipped = 10;
  std::optional<std::int64_t> guessing_after;
  std::optional<StopAboveConfig> stop_above;

  static config::Fields fields();
  void check(config::Problems& problems, const std::string& path) const;
};

// The half type that a model computes in, with weights in f32; empty for f32 and f64.
[[nodiscard]] std::optional<DType> half_type(Precision precision);
[[nodiscard]] LossScaler make_loss_scaler(const TrainConfig& train);

}  // namespace norma
