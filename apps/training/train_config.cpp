#include "apps/training/train_config.h"

namespace norma {

using namespace config;

Fields TrainConfig::fields() {
  return {
      field("steps", &TrainConfig::steps, "Optimizer steps of the run; or give epochs.",
            at_least(1), also_called("max_steps")),
      field("epochs", &TrainConfig::epochs, "Passes over the training part; or give steps.",
            at_least(1)),
      field("batch", &TrainConfig::batch, "Samples a forward pass.", at_least(1),
            also_called("batch_size")),
      field("accumulate", &TrainConfig::accumulate,
            "Batches whose gradients one optimizer step averages.", at_least(1)),
      field("clip_norm", &TrainConfig::clip_norm,
            "Longest gradient, over all parameters together; null: no limit.", above(0)),
      field("clip_value", &TrainConfig::clip_value,
            "Largest element of a gradient; null: no limit.", above(0)),
      field("precision", &TrainConfig::precision, "Type that the model computes in."),
      field("loss_scale", &TrainConfig::loss_scale,
            "Factor on the loss in f16, so that small gradients do not vanish.", above(0)),
      field("eval_every", &TrainConfig::eval_every,
            "Steps between evaluations; null: after every epoch, or at the end of a run in steps.",
            at_least(1)),
      field("eval_batches", &TrainConfig::eval_batches, "Batches of an evaluation; null: all.",
            at_least(1)),
      field("checkpoint_every", &TrainConfig::checkpoint_every,
            "Steps between checkpoints; null: with every evaluation.", at_least(1)),
      field("keep", &TrainConfig::keep, "Last checkpoints that are kept, besides the best.",
            at_least(0)),
      field("best", &TrainConfig::best, "What makes a checkpoint the best one."),
      field("early_stop", &TrainConfig::early_stop,
            "Stop after so many evaluations without a better one; null: never.", at_least(1)),
      field("log_every", &TrainConfig::log_every, "Steps between records of the training loss.",
            at_least(1)),
      field("probe_every", &TrainConfig::probe_every,
            "Steps between probes of the model, the first before a step is taken; null: none.",
            at_least(1)),
      field("probe_sharpness", &TrainConfig::probe_sharpness,
            "Probes measure the sharpness too, at the cost of some tens of steps each."),
      field("ema", &TrainConfig::ema,
            "Share of the old value in a running mean of the weights; null: none.", above(0),
            below(1)),
      field("recompute", &TrainConfig::recompute,
            "Keep no values inside the blocks; compute them again in the backward pass."),
      field("on_divergence", &TrainConfig::on_divergence,
            "What to do when the loss is not finite and skipping did not help."),
      field("max_skipped", &TrainConfig::max_skipped,
            "Steps in a row that may be skipped since they were not finite.", at_least(0)),
      field("guessing_after", &TrainConfig::guessing_after,
            "Step from which a loss at the level of guessing counts as failed; null: never.",
            at_least(0))};
}

void TrainConfig::check(Problems& problems, const std::string& path) const {
  if (steps.has_value() == epochs.has_value()) {
    problems.add(join(path, "steps"), "expected either steps or epochs; got {}",
                 steps ? "both" : "neither");
  }
  // What is part of the format, but not of this version of the program: refused, so that no
  // setting is without effect. Whoever builds one takes its line out.
  const auto later = [&](const char* key, bool given) {
    if (given) problems.add(join(path, key), "not available in this version; leave it out");
  };
  later("precision", precision == Precision::bf16 || precision == Precision::f16);
  later("loss_scale", !std::holds_alternative<LossScale>(loss_scale));
  later("ema", ema.has_value());
  later("recompute", recompute);
}

}  // namespace norma
