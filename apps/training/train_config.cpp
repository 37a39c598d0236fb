#include "apps/training/train_config.h"

#include "core/config/sizes.h"

namespace norma {

using namespace config;

Fields StopAboveConfig::fields() {
  return {field("loss", &StopAboveConfig::loss, "The level.", required()),
          field("after", &StopAboveConfig::after, "Step from which the run may be stopped.",
                at_least(0)),
          field("for", &StopAboveConfig::steps,
                "Steps in a row whose losses must all have been above the level.", at_least(1))};
}

Fields TrainConfig::fields() {
  return {
      field("steps", &TrainConfig::steps, "Optimizer steps of the run; or give epochs.",
            at_least(1), also_called("max_steps max_iters num_steps iterations")),
      field("epochs", &TrainConfig::epochs, "Passes over the training part; or give steps.",
            a_size(), also_called("num_epochs max_epochs num_train_epochs")),
      field("batch", &TrainConfig::batch, "Samples a forward pass.", a_size(),
            also_called("batch_size per_device_train_batch_size")),
      field("accumulate", &TrainConfig::accumulate,
            "Batches whose gradients one optimizer step averages.", between(1, 1e6),
            also_called("gradient_accumulation_steps grad_accum_steps")),
      field("clip_norm", &TrainConfig::clip_norm,
            "Longest gradient, over all parameters together; null: no limit.", above(0),
            also_called("grad_clip max_grad_norm clip_grad_norm")),
      field("clip_value", &TrainConfig::clip_value,
            "Largest element of a gradient; null: no limit.", above(0)),
      field("precision", &TrainConfig::precision,
            "Type that the model computes in; the weights, their gradients and all sums are f32 in "
            "bf16 and f16.",
            also_called("dtype amp")),
      field("loss_scale", &TrainConfig::loss_scale,
            "Factor on the loss, so that small gradients do not vanish in f16: a number, or "
            "\"dynamic\": 65536 in f16, halved when a gradient overflows and doubled after 2000 "
            "good steps; 1 in bf16.",
            between(1e-10, 1e30)),
      field("eval_every", &TrainConfig::eval_every,
            "Steps between evaluations; null: after every epoch, or at the end of a run in steps.",
            at_least(1), also_called("eval_interval eval_steps")),
      field("eval_batches", &TrainConfig::eval_batches, "Batches of an evaluation; null: all.",
            at_least(1)),
      field("checkpoint_every", &TrainConfig::checkpoint_every,
            "Steps between checkpoints; null: with every evaluation.",
            at_least(1) & also_called("save_every save_steps save_interval")),
      field("keep", &TrainConfig::keep, "Last checkpoints that are kept, besides the best.",
            at_least(0)),
      field("best", &TrainConfig::best, "What makes a checkpoint the best one."),
      field("early_stop", &TrainConfig::early_stop,
            "Stop after so many evaluations without a better one; null: never.", at_least(1)),
      field("log_every", &TrainConfig::log_every, "Steps between records of the training loss.",
            at_least(1), also_called("log_interval logging_steps")),
      field("log_logits", &TrainConfig::log_logits,
            "Records of the training loss have the step's largest attention logit; with "
            "optimizer.qk_clip they always do."),
      field("probe_every", &TrainConfig::probe_every,
            "Steps between probes of the model, the first before a step is taken; null: none.",
            at_least(1)),
      field("probe_sharpness", &TrainConfig::probe_sharpness,
            "Probes measure the sharpness too, at the cost of some tens of steps each."),
      field("probe_rounding", &TrainConfig::probe_rounding,
            "Probes measure how far output and gradient part from the same model in f64."),
      field("ema", &TrainConfig::ema,
            "Share of the old value in a running mean of the weights, which evaluations use; null: "
            "none.",
            above(0), below(1)),
      field(
          "recompute", &TrainConfig::recompute,
          "Keep no values inside the blocks of a transformer, or inside residual layers; compute "
          "them again in the backward pass. Less memory, the same bits, about a third more time."),
      field("modes", &TrainConfig::modes,
            "For study, two common mistakes: forget_eval evaluates in training mode, which moves "
            "running statistics; forget_train goes on in evaluation mode after the first "
            "evaluation."),
      field("on_divergence", &TrainConfig::on_divergence,
            "What to do when the loss is not finite and skipping did not help."),
      field("max_skipped", &TrainConfig::max_skipped,
            "Steps in a row that may be skipped since they were not finite.", at_least(0)),
      field("guessing_after", &TrainConfig::guessing_after,
            "Step from which a loss at the level of guessing counts as failed; null: never.",
            at_least(0)),
      field("stop_above", &TrainConfig::stop_above,
            "Stop a run that does not learn: whose losses stay above a level; null: never.")};
}

void TrainConfig::check(Problems& problems, const std::string& path) const {
  if (steps.has_value() == epochs.has_value()) {
    problems.add(join(path, "steps"), "expected either steps or epochs; got {}",
                 steps ? "both; leave one of them out, or set it to null" : "neither");
  }
  if (!half_type(precision) && std::holds_alternative<double>(loss_scale)) {
    problems.add(join(path, "loss_scale"),
                 "has no use in f32 and f64; leave it out, or set precision to f16 or bf16");
  }
  if (half_type(precision) && probe_sharpness) {
    problems.add(
        join(path, "probe_sharpness"),
        "second derivatives need f32 or f64; leave it out, or set precision to one of them");
  }
}

std::optional<DType> half_type(Precision precision) {
  if (precision == Precision::bf16) return DType::bf16;
  if (precision == Precision::f16) return DType::f16;
  return std::nullopt;
}

LossScaler make_loss_scaler(const TrainConfig& train) {
  if (const double* fixed = std::get_if<double>(&train.loss_scale)) {
    return LossScaler::fixed(*fixed);
  }
  return train.precision == Precision::f16 ? LossScaler::dynamic() : LossScaler::fixed(1);
}

}  // namespace norma
