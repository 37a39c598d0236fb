// The training loop: config -> data, model, optimizer, schedule -> per step {batch, forward, loss,
// backward, clip, update, record} -> metrics.jsonl, checkpoints, summary.json.
#pragma once

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/data/data_sets.h"
#include "apps/training/checkpoint.h"
#include "apps/training/evaluation.h"
#include "apps/training/failure.h"
#include "apps/training/guessing.h"
#include "apps/training/logit_watch.h"
#include "apps/training/progress.h"
#include "apps/training/run_config.h"
#include "apps/training/run_folder.h"
#include "apps/training/run_result.h"
#include "models/models.h"
#include "optim/clipping.h"
#include "optim/ema.h"
#include "optim/loss_scaler.h"
#include "optim/schedules.h"

namespace norma {

// A step of another run to go on from.
struct ForkPoint {
  std::string run;  // its folder
  std::int64_t step = 0;
};

struct TrainOptions {
  std::string out = {};  // folder of the run; empty: runs/<name>
  bool resume = false;
  std::string init = {};  // weights to start from, a safetensors file
  bool quiet = false;
  std::optional<ForkPoint> fork = std::nullopt;
  // Step after which the run is saved and left, as if it were interrupted; 0: none.
  std::int64_t until = 0;
  bool dry = false;  // no folder, and nothing is written: for start_at() and train_step() alone
};

// What a step gives.
struct StepResult {
  double loss = 0;
  double lr = 0;
  double loss_scale = 1;
  double largest_logit = 0;  // of the attention; where it is watched
  Clipped clipped;
  std::int64_t samples = 0;
  [[nodiscard]] bool finite() const { return std::isfinite(loss) && clipped.finite; }
  // What is not finite.
  [[nodiscard]] std::string fault() const;
};

// Asks the running training to finish its step, save and stop. Safe in a signal handler.
void request_stop();
// Makes Ctrl-C and SIGTERM call it.
void stop_on_signals();

class Trainer {
 public:
  // Reads the data and builds everything; creates the run's folder last, when all of it fits.
  // Throws ConfigError or Error.
  Trainer(const RunConfig& config, const TrainOptions& options);

  [[nodiscard]] RunResult run();

  [[nodiscard]] const RunFolder& folder() const { return *folder_; }
  [[nodiscard]] Model& model() { return *model_; }
  [[nodiscard]] const DataSet& data() const { return *data_; }

  // One optimizer step: number step + 1 of the run. If loss or gradient is not finite, nothing
  // changes, running statistics included.
  StepResult train_step(std::int64_t step);
  // Goes on from a checkpoint, in this run's precision. Throws Error if it does not fit.
  void start_at(const Checkpoint& checkpoint);
  // Lets the model set what the first batch tells, at the start of a run with fresh weights.
  void profile_model();

 private:
  // Forward and backward of one step, and the clipping; updates nothing but running statistics.
  [[nodiscard]] StepResult gradients_of(std::int64_t step, double loss_scale);
  void keep_buffers();
  void restore_buffers();
  void record(std::int64_t step, const StepResult& result);
  // Counts the step, records it and says if it was left out.
  void note_step(std::int64_t step, const StepResult& result);
  // Sets last_evaluation_; writes it down once a step, however often a run is resumed there.
  void evaluate_now(std::int64_t step);
  // Writes down what a probe finds after that step; 0: before the first one.
  void probe_now(std::int64_t step);
  // An interrupted run is saved whatever `keep` says.
  enum class Save { as_configured, always };
  void checkpoint(std::int64_t step, Save save = Save::as_configured);
  // state_ as it is after `step` steps, with the parts that others hold.
  [[nodiscard]] TrainState state_at(std::int64_t step) const;
  // The loop; fills `result` as it goes.
  void train_steps(RunResult& result);
  // Behind the loop: a last evaluation, and what became of a run that nothing has ended before.
  void conclude(RunResult& result, std::int64_t step, double loss_scale);
  // Ends the run: says why, with the first op that went wrong, and keeps what a replay needs.
  void diverge(RunResult& result, Failure failure, double loss_scale);
  [[nodiscard]] std::string first_failure(std::int64_t step, double loss_scale);
  void try_write_summary(const RunResult& result) const;
  // A batch may be too small for a norm over it, with train.batch 1 or at the end of an epoch,
  // where the last one may be smaller: refused before the first step, as a wrong configuration is.
  void try_smallest_batch();
  void open_folder();
  void resume_from_checkpoint();
  void fork_from(const ForkPoint& point);
  [[nodiscard]] Learner learner() { return {*model_, *optimizer_, ema_.get()}; }
  [[nodiscard]] bool at_guessing_level(std::int64_t step) const;
  [[nodiscard]] bool stops_early() const;
  // True iff train.stop_above ends the run here.
  [[nodiscard]] bool fails_to_learn(std::int64_t step) const;
  [[nodiscard]] double seconds() const { return state_.seconds + progress_->seconds(); }

  RunConfig config_;
  TrainOptions options_;
  Json resolved_;  // the configuration with all defaults
  std::unique_ptr<DataSet> data_;
  ModelPtr model_;
  ModelPtr exact_;  // in f64, from the first probe on with train.probe_rounding
  FlatParametersPtr parameters_;
  OptimizerPtr optimizer_;
  std::unique_ptr<Ema> ema_;  // null without train.ema
  LossScaler scaler_;
  std::unique_ptr<LogitWatch> logits_;  // null without optimizer.qk_clip and train.log_logits
  std::int64_t total_steps_ = 0;
  SchedulePtr schedule_;
  std::optional<RunFolder> folder_;
  std::unique_ptr<FolderLock> lock_;
  std::unique_ptr<MetricsLog> metrics_;
  std::unique_ptr<Progress> progress_;
  bool given_weights_ = false;  // of a file or a checkpoint, not of the seed
  TrainState state_;
  KeptState kept_;
  Json lineage_;                           // of a fork or of given weights; else null
  std::optional<GuessingLevel> guessing_;  // with train.guessing_after
  std::vector<NamedTensor> buffers_;       // the model's; share memory with it
  std::vector<Tensor> buffers_before_;     // their values before the step
  std::optional<Evaluation> last_evaluation_;
};

}  // namespace norma
