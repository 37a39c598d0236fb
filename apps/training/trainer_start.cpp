// How a run begins: its parts, given weights, its folder, a checkpoint to go on from, a fork.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/training/build.h"
#include "apps/training/first_failure.h"
#include "apps/training/progress.h"
#include "apps/training/trainer.h"
#include "core/error.h"
#include "core/file.h"
#include "core/safetensors.h"

namespace norma {
namespace {

// The whole configuration. That of a resumed run must be the run's own, which is seen before data
// are read: the data may be what differs. Throws Error.
Json resolved_of(const RunConfig& config, const TrainOptions& options) {
  Json resolved = config::to_json(config);
  if (!options.resume) return resolved;
  const RunFolder folder = RunFolder::find(options.out, config.name);
  const auto differences = config::difference(config::load_json(folder.config_path()), resolved);
  require(
      differences.empty(),
      "{0}: was started with another configuration:\n{1}`norma train {0} --resume` goes on with "
      "the run's own (put a data file that has moved back for it), `norma fork` starts a new run "
      "from one of its steps, which takes --set data.path=FILE",
      folder.path(), config::to_text(differences));
  return resolved;
}

}  // namespace

Trainer::Trainer(const RunConfig& config, const TrainOptions& options)
    : config_(config),
      options_(options),
      resolved_(resolved_of(config, options)),
      data_(build_data(config)),
      model_(build_model(config, data_->spec())),
      parameters_(flatten(model_->named_parameters(), half_type(config.train.precision))),
      optimizer_(make_optimizer(config.optimizer, parameters_)),
      scaler_(make_loss_scaler(config.train)),
      total_steps_(total_steps(config.train, *data_)) {
  check_outputs(config_.loss, model_->output().shape, data_->spec());
  schedule_ = make_schedule(config.schedule, config.optimizer.options().lr, total_steps_,
                            tokens_per_step(config.train, data_->spec()));
  require(
      !(options.resume && !options.init.empty()),
      "train: --init gives the weights to start from, and --resume those of the run's checkpoint; "
      "give one of them");
  const std::vector<Tensor> all = model_->parameters();
  require(!all.empty(), "model: it has no parameters, so that there is nothing to train");
  require(std::any_of(all.begin(), all.end(), [](const Tensor& p) { return p.requires_grad(); }),
          "optimizer.groups: they freeze every parameter, so that there is nothing to train");
  if (!options.init.empty()) {
    refuse_folder(options.init);
    const SafetensorsFile file(options.init);
    (void)load_safetensors(file, learner().state(), {.convert = true});
    for (const NamedTensor& loaded : learner().state()) {
      require(all_finite(loaded.tensor),
              "{}: {} holds numbers that are not finite, or beyond the range of {}", options.init,
              loaded.name, name_of(loaded.tensor.dtype()));
    }
    parameters_->publish();
    given_weights_ = true;
    lineage_["init"] = options.init;
  }
  const std::optional<QkClipConfig>& clip = config.optimizer.options().qk_clip;
  if (clip || config.train.log_logits) {
    logits_ =
        std::make_unique<LogitWatch>(clip ? std::make_unique<QkClip>(*clip, parameters_) : nullptr);
  }
  if (config.train.ema) ema_ = std::make_unique<Ema>(*config.train.ema, parameters_);
  buffers_ = model_->named_buffers();
  if (config.train.guessing_after) {
    guessing_ = guessing_level(*data_, config.loss, config.train.batch);
  }
  if (options.fork) fork_from(*options.fork);
  try_smallest_batch();
  if (!options.dry) open_folder();
}

void Trainer::try_smallest_batch() {
  const std::int64_t all = data_->num_batches(Part::train, config_.train.batch);
  const bool ends = all != DataSet::kEndless && total_steps_ > (all - 1) / config_.train.accumulate;
  if (!ends && config_.train.batch > 1) return;
  const NoGrad off;
  keep_buffers();
  model_->train();
  const Batch batch = data_->train_batch(ends ? all - 1 : 0, config_.train.batch);
  const bool smaller = batch.samples() < config_.train.batch;
  try {
    if (smaller || batch.samples() == 1) (void)model_->forward(batch.inputs, forward_of(batch));
  } catch (const Error& e) {
    if (!smaller || all == 1) throw;  // without the last one, nothing would be left
    throw Error::format(
        "{}; the last batch of an epoch has {} of the {} samples of train.batch: data.drop_last "
        "leaves it out",
        e.what(), batch.samples(), config_.train.batch);
  }
  restore_buffers();
}

void Trainer::open_folder() {
  folder_ = options_.resume ? RunFolder::find(options_.out, config_.name)
                            : RunFolder::create(options_.out, config_.name);
  lock_ = std::make_unique<FolderLock>(folder_->path());
  folder_->remove_temporaries();
  if (options_.resume) resume_from_checkpoint();
  write_data_record(folder_->data_path(), data_->record());
  if (options_.fork) {
    write_file(folder_->metrics_path(), read_file(RunFolder(options_.fork->run).metrics_path()));
  }
  require(options_.until == 0 || state_.step < options_.until,
          "train: the run is at step {}; give a later one with --until", state_.step);
  metrics_ = std::make_unique<MetricsLog>(folder_->metrics_path(), state_.step);
  progress_ = std::make_unique<Progress>(config_.name, total_steps_, state_.step, options_.quiet);
  if (!options_.resume && !lineage_.is_null()) {
    // Weights from elsewhere are in no configuration: a resume must find them, so they are there
    // before config.json makes the folder a run.
    write_file(folder_->lineage_path(), lineage_.dump(2) + "\n");
    checkpoint(state_.step, Save::always);
  }
  write_file(folder_->config_path(), resolved_.dump(2) + "\n");
  for (const std::string& warning : size_warnings(config_.train, *data_)) {
    progress_->warn(warning);
  }
  if (const std::string warning = output_warning(model_->output().shape, data_->spec());
      !warning.empty()) {
    progress_->warn(warning);
  }
  if (const std::string warning = schedule_->warning(); !warning.empty()) {
    progress_->warn(warning);
  }
}

void Trainer::resume_from_checkpoint() {
  // A run that an older version of the program began has no record yet.
  if (std::filesystem::exists(folder_->data_path())) {
    check_same_data(read_data_record(folder_->data_path()), data_->record(), folder_->path());
  }
  std::vector<std::string> warnings;
  if (auto state = load_newest_checkpoint(*folder_, learner(), resolved_, warnings)) {
    state_ = *state;
    given_weights_ = true;
    scaler_.load_state(state_.scaler);
  }
  for (const std::string& w : warnings) print_warning(w);
}

void Trainer::start_at(const Checkpoint& checkpoint) {
  (void)restore(checkpoint, learner(), Restore::weights);
  state_ = checkpoint.state;
  if (config_.train.precision == Precision::f16) scaler_.load_state(state_.scaler);
}

void Trainer::fork_from(const ForkPoint& point) {
  const RunFolder parent = RunFolder::open(point.run);
  const Checkpoint checkpoint = read_checkpoint(parent, point.step);
  require(checkpoint.state.step < total_steps_,
          "fork: step {} is not before the end of the new run, {} steps; --set {} to more",
          checkpoint.state.step, total_steps_,
          config_.train.steps ? "train.steps" : "train.epochs");
  lineage_["parent"] = parent.path();
  lineage_["step"] = checkpoint.state.step;
  lineage_["differences"] = Json::object();
  const auto differences = config::difference(config::parse_json(checkpoint.config), resolved_);
  for (const config::Difference& d : differences) {
    if (d.path != "name")
      lineage_["differences"][d.path] = fmt::format("{} -> {}", d.before, d.after);
  }
  std::vector<std::string> anew;
  try {
    anew = restore(checkpoint, learner(), Restore::weights);
  } catch (const Error& e) {
    throw Error::format(
        "fork: the weights of {} at step {} do not fit the new configuration; data and model must "
        "keep their sizes: {}",
        parent.path(), checkpoint.state.step, e.what());
  }
  for (const std::string& what : anew) {
    lineage_["anew"].push_back(what);
    print_warning("starts anew, since it does not fit: " + what);
  }
  // An average that was not in the checkpoint starts as the weights are now.
  if (ema_ && !checkpoint.files.contains(kAveragesFile)) {
    ema_ = std::make_unique<Ema>(*config_.train.ema, parameters_);
  }
  if (const auto before = parent.lineage()) lineage_["lineage"] = *before;
  state_ = checkpoint.state;
  given_weights_ = true;
  // The new run judges by its own evaluations, whose checkpoints it has.
  state_.best.reset();
  state_.best_step = state_.without_better = 0;
  const auto changed = [&](std::string_view key) {
    return std::any_of(differences.begin(), differences.end(),
                       [&](const auto& d) { return d.path == key; });
  };
  if (changed("train.stop_above")) state_.above_in_a_row = 0;
  if (!changed("train.precision") && !changed("train.loss_scale")) {
    scaler_.load_state(state_.scaler);
  }
}

void Trainer::profile_model() {
  const Batch batch = data_->train_batch(0, config_.train.batch);
  if (!model_->profile(batch.inputs, forward_of(batch))) return;
  parameters_->collect();
  if (ema_) ema_ = std::make_unique<Ema>(*config_.train.ema, parameters_);
}

}  // namespace norma
