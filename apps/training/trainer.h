// The training loop: config -> data, model, optimizer, schedule -> per step {batch, forward, loss,
// backward, clip, update, record} -> metrics.jsonl, checkpoints, summary.json.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/data/data_sets.h"
#include "apps/training/checkpoint.h"
#include "apps/training/evaluation.h"
#include "apps/training/logit_watch.h"
#include "apps/training/progress.h"
#include "apps/training/run_config.h"
#include "apps/training/run_folder.h"
#include "models/models.h"
#include "optim/clipping.h"
#include "optim/ema.h"
#include "optim/loss_scaler.h"
#include "optim/schedules.h"

namespace norma {

struct TrainOptions {
  std::string out = {};  // folder of the run; empty: runs/<name>
  bool resume = false;
  std::string init = {};  // weights to start from, a safetensors file
  bool quiet = false;
};

enum class RunStatus { completed, diverged, interrupted, failed };
[[nodiscard]] std::string_view name_of(RunStatus status);

struct RunResult {
  RunStatus status = RunStatus::completed;
  std::int64_t steps = 0;
  double final_loss = 0;  // of the last step's batch
  double seconds = 0;
  std::optional<Evaluation> final;  // on the last evaluation's part
  std::string reason;               // of a run that diverged
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

 private:
  struct Step {
    double loss = 0;
    double lr = 0;
    double loss_scale = 1;
    double largest_logit = 0;  // of the attention weights; with optimizer.qk_clip
    Clipped clipped;
    std::int64_t samples = 0;
  };
  [[nodiscard]] Step train_step(std::int64_t step);
  // Lets the model set what the first batch tells; weights from a file have it already.
  void profile_model();
  void record(std::int64_t step, const Step& result);
  // Sets last_evaluation_; writes it down once a step, however often a run is resumed there.
  void evaluate_now(std::int64_t step);
  // Writes down what a probe finds after that step; 0: before the first one.
  void probe_now(std::int64_t step);
  // An interrupted run is saved whatever `keep` says.
  enum class Save { as_configured, always };
  void checkpoint(std::int64_t step, Save save = Save::as_configured);
  // The loop; fills `result` as it goes.
  void train_steps(RunResult& result);
  void try_write_summary(const RunResult& result) const;
  void resume_from_checkpoint();
  [[nodiscard]] Learner learner() { return {*model_, *optimizer_, ema_.get()}; }
  [[nodiscard]] bool at_guessing_level() const;
  [[nodiscard]] bool stops_early() const;
  void write_summary(const RunResult& result) const;
  [[nodiscard]] double seconds() const { return state_.seconds + progress_->seconds(); }

  RunConfig config_;
  TrainOptions options_;
  Json resolved_;  // the configuration with all defaults
  std::unique_ptr<DataSet> data_;
  ModelPtr model_;
  FlatParametersPtr parameters_;
  OptimizerPtr optimizer_;
  std::unique_ptr<Ema> ema_;  // null without train.ema
  LossScaler scaler_;
  std::unique_ptr<LogitWatch> logits_;  // null without optimizer.qk_clip
  std::int64_t total_steps_ = 0;
  SchedulePtr schedule_;
  std::optional<RunFolder> folder_;
  std::unique_ptr<FolderLock> lock_;
  std::unique_ptr<MetricsLog> metrics_;
  std::unique_ptr<Progress> progress_;
  TrainState state_;
  std::optional<Evaluation> last_evaluation_;
  static constexpr std::size_t kRecent = 10;  // losses that at_guessing_level() looks at
};

}  // namespace norma
