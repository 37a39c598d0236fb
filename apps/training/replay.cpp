#include "apps/training/replay.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "apps/training/trainer.h"

namespace norma {
namespace {

constexpr double kBlownUp = 10;  // times the largest loss before

// Trains without a folder, in another precision than the run's if so asked.
std::unique_ptr<Trainer> dry_trainer(RunConfig config, Precision precision) {
  config.train.precision = precision;
  // f64 has the range for all gradients; a fixed scale of the run would be refused.
  if (precision == Precision::f64) config.train.loss_scale = TrainConfig{}.loss_scale;
  return std::make_unique<Trainer>(config, TrainOptions{.quiet = true, .dry = true});
}

// How a step fails in f64; empty if it does not. `limit`: a loss above it has blown up.
std::string fault_of(const StepResult& step, double limit) {
  constexpr double kMost = std::numeric_limits<float>::max();
  if (!step.finite()) return step.fault();
  if (step.clipped.norm > kMost) {
    return fmt::format("the gradient's norm is {:.4g}, beyond the range of f32", step.clipped.norm);
  }
  if (step.loss > limit) {
    return fmt::format("the loss is {:.6g}, more than {} times those before", step.loss, kBlownUp);
  }
  return "";
}

// The largest loss that is nothing unusual: of the steps before the kept state, or a guess.
double usual_loss(const KeptFailure& kept, const RunConfig& config, const DataSet& data) {
  double most = 0;
  for (double loss : kept.before.state.recent) most = std::max(most, loss);
  const auto guessing = guessing_level(data, config.loss, config.train.batch);
  return guessing ? std::max(most, guessing->loss) : most;
}

void replay_steps(const KeptFailure& kept, const RunConfig& config, ReplayResult& result,
                  const std::function<void(const ReplayedStep&)>& show) {
  const auto own = dry_trainer(config, config.train.precision);
  const auto wide = dry_trainer(config, Precision::f64);
  own->start_at(kept.before);
  wide->start_at(kept.before);
  result.from_step = kept.before.state.step;
  double usual = usual_loss(kept, config, wide->data());
  for (std::int64_t step = result.from_step; step < kept.failure.step; ++step) {
    const StepResult narrow = own->train_step(step);
    const StepResult now = wide->train_step(step);
    show({step + 1, narrow.loss, narrow.clipped.norm, now.loss, now.clipped.norm});
    // Nothing is known of the size of the first loss of a run.
    if (usual == 0 && std::isfinite(now.loss)) usual = std::fabs(now.loss);
    const std::string fault = fault_of(now, kBlownUp * usual);
    if (fault.empty()) continue;
    result.fails_again = true;
    result.what = fmt::format("step {}: {}", step + 1, fault);
    return;
  }
  result.what = "all of it stays finite, and no larger than before";
}

void replay_from_start(const RunFolder& run, const KeptFailure& kept, const RunConfig& config,
                       ReplayResult& result, const std::function<void(const ReplayedStep&)>& show) {
  const auto wide = dry_trainer(config, Precision::f64);
  if (run.lineage()) {
    const std::vector<std::int64_t> steps = run.checkpoint_steps();
    require(!steps.empty(), "{}: has no checkpoint, and its first weights came from elsewhere",
            run.path());
    result.from_step = steps.front();
    wide->start_at(read_checkpoint(run, steps.front()));
  } else {
    wide->profile_model();
  }
  std::vector<double> recent;
  for (std::int64_t step = result.from_step; step < kept.failure.step; ++step) {
    const StepResult now = wide->train_step(step);
    add_recent(recent, now.loss);
    show({step + 1, std::nan(""), std::nan(""), now.loss, now.clipped.norm});
  }
  const double mean = mean_of(recent);
  result.fails_again = std::isnan(mean) || is_guessing(mean, kept.failure.guessing);
  result.what = fmt::format("the mean of the last {} losses is {:.4f}; guessing gives {:.4f}",
                            recent.size(), mean, kept.failure.guessing);
}

}  // namespace

ReplayResult replay(const RunFolder& run, const std::function<void(const ReplayedStep&)>& show) {
  const KeptFailure kept = read_failure(run);
  const RunConfig config = load_run_config(run.config_path());
  ReplayResult result;
  result.failure = kept.failure;
  if (kept.failure.kind == FailureKind::guessing) {
    replay_from_start(run, kept, config, result, show);
  } else {
    replay_steps(kept, config, result, show);
  }
  return result;
}

}  // namespace norma
