#include "apps/training/trainer.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <csignal>
#include <nlohmann/json.hpp>

#include "apps/training/build.h"
#include "apps/training/first_failure.h"
#include "apps/training/probe.h"
#include "core/error.h"

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
    progress_->finish();
    if (!options_.resume && result.steps == first) {
      folder_->withdraw();  // nothing was learned: the corrected command finds the place free
    } else {
      result.status = RunStatus::failed;
      result.reason = e.what();
      try_write_summary(result);
    }
    throw;
  }
  progress_->finish();
  result.final = last_evaluation_;
  result.final_step = state_.evaluated_step;
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
    progress_->warn(fmt::format("nothing is kept for a replay: {}", e.what()));
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
  if (hopeless && state_.evaluated_step != step) last_evaluation_.reset();
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
