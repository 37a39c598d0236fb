// Checkpoints: everything that the next step depends on, in checkpoints/step-N/.
//
// Note [Whole checkpoints]. A checkpoint holds tensor files and state.json, which has a checksum of
// each of them and of itself. So a file that was cut, or in which a single bit has flipped, is
// found before it is used. It also has the configuration, so that a checkpoint is never loaded into
// another run than its own.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "apps/training/run_folder.h"
#include "apps/training/spike_score.h"
#include "layers/module.h"
#include "optim/ema.h"
#include "optim/loss_scaler.h"
#include "optim/optimizer.h"

namespace norma {

// The file of a checkpoint that has the averages of train.ema.
constexpr const char* kAveragesFile = "ema.safetensors";

// What a checkpoint knows besides tensors. The data order and the dropout streams are functions of
// the seed and the step, so no generator's state is needed.
struct TrainState {
  std::int64_t step = 0;              // optimizer steps done
  std::int64_t samples = 0;           // samples seen
  std::int64_t skipped = 0;           // steps left out since a gradient was not finite
  double seconds = 0;                 // of training so far
  std::optional<double> best;         // the best evaluation, by train.best
  std::int64_t best_step = 0;         // its step, where there is one
  std::int64_t evaluated_step = 0;    // of the last evaluation that stands in metrics.jsonl
  std::int64_t without_better = 0;    // evaluations since the best one
  std::int64_t skipped_in_a_row = 0;  // of the steps just done
  std::vector<double> recent;         // losses of the last steps
  std::int64_t above_in_a_row = 0;    // steps up to now with a loss above train.stop_above
  LossScaler::State scaler;           // of the loss scale; 1 where there is none
  SpikeScore loss_spikes;             // of the losses of all steps
  SpikeScore norm_spikes;             // of the gradient norms
};

// The tensors that training changes.
struct Learner {
  Module& model;
  Optimizer& optimizer;
  Ema* ema = nullptr;  // the average of the weights, if the run keeps one
  // The model's state_dict() with the weights as the optimizer has them: f32 where the model
  // computes with half copies, which the optimizer's parameters().publish() renews.
  [[nodiscard]] std::vector<NamedTensor> state() const;
};

// Tensors by the name of their file.
using TensorFiles = std::map<std::string, std::vector<NamedTensor>>;
// What a checkpoint has of a learner; shares memory with it.
[[nodiscard]] TensorFiles tensors_of(const Learner& learner);

// A checkpoint as it was read.
struct Checkpoint {
  TrainState state;
  std::string config;  // the resolved configuration, JSON
  TensorFiles files;
};
// Throws Error if anything is missing or not as it was written.
[[nodiscard]] Checkpoint read_checkpoint(const std::string& folder);

// Writes model.safetensors, optimizer.safetensors, ema.safetensors, series.safetensors and
// state.json into a folder beside, brings them to the disk, and renames the folder into place: a
// reader never sees half a checkpoint. `config` is the resolved configuration. Throws Error, for
// instance on a full disk, and leaves nothing then. `folder` must not be there.
void write_checkpoint(const std::string& folder, const TrainState& state, TensorFiles files,
                      const Json& config);

// Copies the tensors of a checkpoint into the learner, converted to its types. Throws Error with
// all weights that do not fit. So it does for an optimizer's state or an average that does not fit,
// or, with `weights`, leaves it as it is and returns a line about it.
enum class Restore { all, weights };
std::vector<std::string> restore(const Checkpoint& checkpoint, const Learner& learner,
                                 Restore what = Restore::all);

// Writes checkpoints/step-N. A damaged one that stands there makes way; a whole one stays.
// Throws Error on a full disk; the older checkpoints are as they were.
void save_checkpoint(const RunFolder& run, const TrainState& state, const Learner& learner,
                     const Json& config);

// Loads the newest checkpoint that is whole into the learner; a damaged one is passed over for the
// one before, with a line in `warnings`. Nothing if there is none. Throws Error if there are some
// and none can be read, and if it belongs to another configuration, with what differs.
[[nodiscard]] std::optional<TrainState> load_newest_checkpoint(const RunFolder& run,
                                                               const Learner& learner,
                                                               const Json& config,
                                                               std::vector<std::string>& warnings);

// The checkpoint of one step. Throws Error, with the steps that there are, if it is not there.
[[nodiscard]] Checkpoint read_checkpoint(const RunFolder& run, std::int64_t step);

// Loads the weights of one checkpoint: of `step`, or (0) of the best one, or of the newest; of
// these a damaged one is passed over, with a warning on stderr. Where it holds averaged weights, it
// is they; buffers are those of the training. Returns its step. Throws Error if there is none, or
// the one of `step`, or each, is damaged.
std::int64_t load_weights(const RunFolder& run, std::int64_t step, Module& model);

// Throws Error if the path where a safetensors file belongs is a folder, with the file that may be
// meant: of a checkpoint, or of a run's newest one.
void refuse_folder(const std::string& path);

// Deletes all but the `keep` newest and the best, which `state` tells.
void prune_checkpoints(const RunFolder& run, std::int64_t keep, const TrainState& state);

}  // namespace norma
