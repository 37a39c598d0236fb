#include "apps/training/trainer.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/training/build.h"
#include "apps/training/first_failure.h"
#include "apps/training/probe.h"
#include "core/error.h"
#include "core/file.h"
#include "core/safetensors.h"

namespace norma {
namespace {

std::atomic<bool> g_stop{false};
static_assert(std::atomic<bool>::is_always_lock_free);  // it is written by a signal handler

}  // namespace

std::string StepResult::fault() const {
  if (!std::isfinite(loss)) return fmt::format("the loss is {}", loss);
  if (!clipped.finite && clipped.parameter.empty()) return "the gradient's norm is not finite";
  return clipped.finite ? "" : fmt::format("the gradient of {} is not finite", clipped.parameter);
}

void request_stop() { g_stop.store(true); }

void stop_on_signals() {
  std::signal(SIGINT, [](int) { request_stop(); });
  std::signal(SIGTERM, [](int) { request_stop(); });
  std::signal(SIGHUP, [](int) { request_stop(); });
  std::signal(SIGPIPE, SIG_IGN);  // a reader of the progress that went away does not end the run
}

Trainer::Trainer(const RunConfig& config, const TrainOptions& options)
    : config_(config),
      options_(options),
      resolved_(config::to_json(config)),
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
  try_last_batch();
  if (!options.dry) open_folder();
}

void Trainer::try_last_batch() {
  const std::int64_t all = data_->num_batches(Part::train, config_.train.batch);
  const bool reached = total_steps_ > (all - 1) / config_.train.accumulate;
  if (all == DataSet::kEndless || !reached) return;
  const NoGrad off;
  keep_buffers();
  model_->train();
  const Batch batch = data_->train_batch(all - 1, config_.train.batch);
  if (batch.samples() < config_.train.batch) {
    (void)model_->forward(batch.inputs, forward_of(batch));
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
    progress_->note("warning: " + warning);
  }
  if (const std::string warning = schedule_->warning(); !warning.empty()) {
    progress_->note("warning: " + warning);
  }
}

void Trainer::resume_from_checkpoint() {
  const Json before = config::load_json(folder_->config_path());
  const auto differences = config::difference(before, resolved_);
  require(differences.empty(),
          "{}: was started with another configuration:\n{}resume it with `--resume` and its own "
          "config.json, or start a new run from one of its steps with `norma fork`",
          folder_->path(), config::to_text(differences));
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
  for (const std::string& w : warnings) fmt::print(stderr, "warning: {}\n", w);
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
          "fork: step {} is not before the end of the new run, {} steps; --set train.steps or "
          "train.epochs",
          checkpoint.state.step, total_steps_);
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
    fmt::print(stderr, "warning: starts anew, since it does not fit: {}\n", what);
  }
  // An average that was not in the checkpoint starts as the weights are now.
  if (ema_ && !checkpoint.files.contains("ema.safetensors")) {
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

void Trainer::keep_buffers() {
  if (buffers_before_.empty()) {
    for (const NamedTensor& b : buffers_) buffers_before_.push_back(b.tensor.clone());
    return;
  }
  for (std::size_t i = 0; i < buffers_.size(); ++i) buffers_before_[i].copy_(buffers_[i].tensor);
}

void Trainer::restore_buffers() {
  for (std::size_t i = 0; i < buffers_.size(); ++i) buffers_[i].tensor.copy_(buffers_before_[i]);
}

StepResult Trainer::train_step(std::int64_t step) {
  keep_buffers();
  StepResult result = gradients_of(step, scaler_.scale());
  result.lr = schedule_->rate(step);
  if (scaler_.update(result.finite())) {
    optimizer_->step(result.lr, result.clipped.grad_scale);
    if (logits_) logits_->clip();
    if (ema_) ema_->update();
  }
  if (!result.finite()) restore_buffers();
  return result;
}

StepResult Trainer::gradients_of(std::int64_t step, double loss_scale) {
  const std::int64_t parts = config_.train.accumulate;
  StepResult result;
  result.loss_scale = loss_scale;
  // The batches first: the loss is the mean over all targets that count, in all parts together.
  std::vector<Batch> batches;
  std::int64_t count = 0;
  for (std::int64_t part = 0; part < parts; ++part) {
    batches.push_back(data_->train_batch(step * parts + part, config_.train.batch));
    const Batch& batch = batches.back();
    Shape outputs{batch.samples()};
    for (std::int64_t size : model_->output().shape) outputs.push_back(size);
    count += config_.loss.count(outputs, batch.targets);
    result.samples += batch.samples();
  }
  const double scale = 1 / static_cast<double>(std::max<std::int64_t>(1, count));
  model_->train(config_.train.modes != Modes::forget_train || state_.evaluated_step == 0);
  parameters_->clear_gradients();
  if (logits_) logits_->reset();
  for (std::int64_t part = 0; part < parts; ++part) {
    const Batch& batch = batches[static_cast<std::size_t>(part)];
    Forward pass = forward_of(batch);
    pass.seed = static_cast<std::uint64_t>(config_.seed);
    pass.stream = fmt::format("step {}/batch {}", step, part);
    pass.observer = logits_.get();
    pass.recompute = config_.train.recompute;
    const Tensor outputs = model_->forward(batch.inputs, pass);
    const Tensor loss = config_.loss.sum(outputs, batch.targets);
    result.loss += unsigned_nan(loss.item() * scale);
    backward(loss, Tensor::full(Shape{}, scale * result.loss_scale, loss.dtype()));
  }
  result.clipped = clip_gradients(
      *parameters_, {.clip_norm = config_.train.clip_norm, .clip_value = config_.train.clip_value},
      1 / result.loss_scale);
  if (logits_) result.largest_logit = logits_->largest();
  return result;
}

void Trainer::record(std::int64_t step, const StepResult& result) {
  if (step % config_.train.log_every != 0 && step != total_steps_ && step != 1) return;
  Json record;
  record["kind"] = "train";
  record["step"] = step;
  record["loss"] = json_number(result.loss);
  record["lr"] = json_number(result.lr);
  record["grad_norm"] = json_number(result.clipped.norm);
  if (config_.train.precision == Precision::f16) record["loss_scale"] = result.loss_scale;
  if (logits_) record["largest_logit"] = json_number(result.largest_logit);
  record["samples"] = state_.samples;
  record["seconds"] = seconds();
  metrics_->append(record);
}

void Trainer::evaluate_now(std::int64_t step) {
  const std::optional<Part> part = evaluation_part(*data_);
  if (!part) return;
  const EmaScope averaged(ema_.get());
  const Evaluation e = evaluate(
      *model_, *data_, *part, config_.loss, config_.train.batch, config_.train.eval_batches,
      config_.train.modes == Modes::forget_eval ? EvaluationMode::training
                                                : EvaluationMode::evaluation);
  last_evaluation_ = e;
  if (state_.evaluated_step == step) return;
  state_.evaluated_step = step;
  Json record;
  record["kind"] = "eval";
  record["step"] = step;
  record["split"] = name_of(e.part);
  record["loss"] = json_number(e.loss);
  if (e.accuracy) record["accuracy"] = json_number(*e.accuracy);
  if (e.exact) record["exact"] = json_number(*e.exact);
  metrics_->append(record);
  const bool by_accuracy = config_.train.best == BestBy::accuracy;
  const double value = by_accuracy ? *e.accuracy : e.loss;
  const bool better = std::isfinite(value) &&
                      (!state_.best || (by_accuracy ? value > *state_.best : value < *state_.best));
  state_.without_better = better ? 0 : state_.without_better + 1;
  if (better) {
    state_.best = value;
    state_.best_step = step;
  }
  progress_->note(fmt::format("{}  step {}  {} loss {:.4f}{}", config_.name, step, name_of(e.part),
                              e.loss, shares_text(e)));
}

void Trainer::probe_now(std::int64_t step) {
  if (config_.train.probe_rounding && !exact_) exact_ = build_exact_model(config_, data_->spec());
  Json record;
  record["kind"] = "probe";
  record["step"] = step;
  for (const auto& [name, value] : probe(*model_, *data_, config_.loss,
                                         {.batch = config_.train.batch,
                                         .curvature = config_.train.probe_sharpness,
                                         .seed = static_cast<std::uint64_t>(config_.seed),
                                         .exact = exact_.get()})) {
    record[name] = json_number(value);
  }
  metrics_->append(record);
}

TrainState Trainer::state_at(std::int64_t step) const {
  TrainState now = state_;
  now.step = step;
  now.seconds = seconds();
  now.scaler = scaler_.state();
  return now;
}

void Trainer::checkpoint(std::int64_t step, Save save) {
  if (config_.train.keep == 0 && save == Save::as_configured) return;
  metrics_->sync();
  save_checkpoint(*folder_, state_at(step), learner(), resolved_);
  prune_checkpoints(*folder_, std::max<std::int64_t>(1, config_.train.keep), state_);
}

bool Trainer::at_guessing_level(std::int64_t step) const {
  return guessing_ && step >= *config_.train.guessing_after &&
         state_.recent.size() == kRecentLosses &&
         is_guessing(mean_of(state_.recent), guessing_->loss);
}

bool Trainer::stops_early() const {
  return config_.train.early_stop && state_.without_better >= *config_.train.early_stop;
}

bool Trainer::fails_to_learn(std::int64_t step) const {
  const std::optional<StopAboveConfig>& stop = config_.train.stop_above;
  return stop && step < total_steps_ && step >= stop->after && state_.above_in_a_row >= stop->steps;
}

RunResult Trainer::run() {
  RunResult result;
  const std::int64_t first = state_.step;
  result.steps = first;
  try {
    train_steps(result);
  } catch (const std::exception& e) {
    if (!options_.resume && result.steps == first) {
      folder_->withdraw();  // nothing was learned: the corrected command finds the place free
    } else {
      result.status = RunStatus::failed;
      result.reason = e.what();
      try_write_summary(result);
    }
    throw;
  }
  result.final = last_evaluation_;
  result.seconds = seconds();
  write_summary(*folder_, config_, result, state_, model_->num_parameters());
  return result;
}

void Trainer::try_write_summary(const RunResult& result) const {
  try {
    write_summary(*folder_, config_, result, state_, model_->num_parameters());
  } catch (const std::exception&) {
    // The error on its way says more: the disk is full, or the folder is gone.
  }
}

std::string Trainer::first_failure(std::int64_t step, double loss_scale) {
  FirstFailure watcher(model_->named_parameters());
  keep_buffers();
  {
    const WatchOps scope(watcher);
    (void)gradients_of(step, loss_scale);
  }
  restore_buffers();
  return watcher.failure() ? "; first in " + to_text(*watcher.failure()) : "";
}

void Trainer::diverge(RunResult& result, Failure failure, double loss_scale) {
  failure.step = result.steps;
  failure.guessing = guessing_ ? guessing_->loss : 0;
  if (failure.kind == FailureKind::not_finite) {
    failure.reason += first_failure(failure.step - 1, loss_scale);
  }
  failure.reason = fmt::format("step {}: {}", failure.step, failure.reason);
  result.status = RunStatus::diverged;
  result.reason = failure.reason;
  if (kept_.empty()) return;  // resumed behind its last step: what was kept then still holds
  try {
    write_failure(*folder_, failure, kept_, resolved_);
  } catch (const std::exception& e) {
    progress_->note(fmt::format("warning: nothing is kept for a replay: {}", e.what()));
  }
}

void Trainer::note_step(std::int64_t step, const StepResult& now) {
  state_.samples += now.samples;
  record(step, now);
  progress_->update(step, now.loss, now.lr);
  state_.skipped_in_a_row = now.finite() ? 0 : state_.skipped_in_a_row + 1;
  state_.loss_spikes.add(now.loss);
  state_.norm_spikes.add(now.clipped.norm);
  add_recent(state_.recent, now.loss);
  if (config_.train.stop_above) {
    const bool above = !(now.loss <= config_.train.stop_above->loss);
    state_.above_in_a_row = above ? state_.above_in_a_row + 1 : 0;
  }
  if (now.finite()) return;
  ++state_.skipped;
  progress_->note(
      fmt::format("{}  step {}: {}; the update was left out", config_.name, step, now.fault()));
}

void Trainer::train_steps(RunResult& result) {
  const TrainConfig& train = config_.train;
  const auto every = [](std::optional<std::int64_t> n, std::int64_t step) {
    return n && step % *n == 0;
  };
  // Without eval_every: after every epoch, or at the end of a run in steps.
  const auto is_evaluated = [&](std::int64_t step) {
    if (step == total_steps_) return true;
    if (train.eval_every) return every(train.eval_every, step);
    return train.epochs && ends_epoch(train, *data_, step);
  };
  const bool stops = train.on_divergence == OnDivergence::stop;
  std::int64_t step = state_.step;
  if (!state_.recent.empty()) result.final_loss = state_.recent.back();
  bool saved = false;
  double loss_scale = scaler_.scale();
  if (!given_weights_) profile_model();
  if (step == 0 && train.probe_every) probe_now(0);
  while (step < total_steps_ && !stops_early() && !fails_to_learn(step)) {
    if (kept_.is_due(step, state_)) kept_.keep(state_at(step), learner());
    const StepResult now = train_step(step);
    loss_scale = now.loss_scale;
    ++step;
    result.steps = step;
    result.final_loss = now.loss;
    note_step(step, now);
    if (stops && state_.skipped_in_a_row > train.max_skipped) {
      std::string why = now.fault();
      if (const auto before = state_.skipped_in_a_row - 1; before > 0) {
        why += fmt::format(", after {} steps that were left out", before);
      }
      diverge(result, {.kind = FailureKind::not_finite, .reason = why}, loss_scale);
      break;
    }
    if (stops && at_guessing_level(step)) break;
    if (every(train.probe_every, step)) probe_now(step);
    const bool evaluated = is_evaluated(step);
    if (evaluated) evaluate_now(step);
    saved = train.checkpoint_every ? every(train.checkpoint_every, step) : evaluated;
    if (saved) checkpoint(step);
    if ((g_stop.load() || step == options_.until) && step < total_steps_ && !fails_to_learn(step)) {
      result.status = RunStatus::interrupted;
      break;
    }
  }
  conclude(result, step, loss_scale);
  if (result.status == RunStatus::interrupted) {
    checkpoint(step, Save::always);
  } else if (result.status != RunStatus::diverged && !saved) {
    checkpoint(step);
  }
}

void Trainer::conclude(RunResult& result, std::int64_t step, double loss_scale) {
  if (result.status != RunStatus::completed) return;
  const bool stuck = at_guessing_level(step);
  const bool hopeless = fails_to_learn(step);
  if (hopeless) last_evaluation_.reset();
  // A run that is resumed at its end has not evaluated yet.
  if (!stuck && !last_evaluation_) evaluate_now(step);
  // While a loss scale finds its value, steps are left out without anything being wrong.
  // The loss itself is not scaled.
  const bool searching = scaler_.is_dynamic() && std::isfinite(result.final_loss);
  const std::int64_t harmless = searching ? config_.train.max_skipped : 0;
  if (state_.skipped_in_a_row > harmless) {
    diverge(result,
            {.kind = FailureKind::not_finite,
             .reason = fmt::format("the last {} updates were left out, since loss or gradient was "
                                   "not finite",
                                   state_.skipped_in_a_row)},
            loss_scale);
  } else if (stuck) {
    diverge(result,
            {.kind = FailureKind::guessing,
             .reason = "the loss sits at the level of guessing, " + guessing_->name},
            loss_scale);
  } else if (hopeless) {
    result.status = RunStatus::failed_to_learn;
    result.reason = fmt::format("stopped early at step {}: the last {} losses all lay above {:.6g}",
                                step, state_.above_in_a_row, config_.train.stop_above->loss);
  }
}

}  // namespace norma
