// A whole training loop with the library alone: a model, an optimizer with a schedule, clipping.
//
// A small transformer learns to give back the token before (the shift task).
#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "core/autograd.h"
#include "core/ops/cross_entropy.h"
#include "core/random.h"
#include "models/transformer.h"
#include "optim/clipping.h"
#include "optim/optimizers.h"
#include "optim/schedules.h"

int main() {
  using namespace norma;
  constexpr std::int64_t kVocab = 16, kLength = 8, kBatch = 16, kSteps = 150;

  TransformerConfig config;
  config.layers = 2;
  config.width = 32;
  config.heads = 2;
  config.hidden = 64;
  config.placement = PrePlacement{};
  const ModelPtr model = config.build(/*seed=*/0, {.shape = Shape{kLength}, .vocab = kVocab});

  const FlatParametersPtr parameters = flatten(model->named_parameters());
  const OptimizerPtr optimizer = make_optimizer(OptimizerConfig(AdamWConfig{}), parameters);
  const SchedulePtr schedule = make_schedule(ScheduleConfig(CosineScheduleConfig{}), 1e-2, kSteps);

  double loss_value = 0;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    RandomStream random(random_key(0, fmt::format("data/step {}", step)));
    std::vector<std::int64_t> ids(kBatch * kLength), targets(kBatch * kLength);
    for (std::int64_t& id : ids) id = random.below(kVocab);
    for (std::int64_t i = 0; i < kBatch * kLength; ++i) {
      const std::int64_t row = i / kLength * kLength, t = i % kLength;
      targets[static_cast<std::size_t>(i)] =
          ids[static_cast<std::size_t>(row + (t + kLength - 1) % kLength)];
    }
    const Shape shape{kBatch, kLength};
    const Tensor logits = (*model)(Tensor::from_ids(shape, ids));
    const Tensor loss = cross_entropy(logits, Tensor::from_ids(shape, targets));
    optimizer->clear_gradients();
    backward(loss);
    const Clipped clipped = clip_gradients(*parameters, {.clip_norm = 1.0});
    optimizer->step(schedule->rate(step), clipped.grad_scale);
    loss_value = loss.item();
    if (step % 30 == 0) fmt::print("step {:3}  loss {:.3f}\n", step, loss_value);
  }
  // The first target of a sequence cannot be known, so ln(16) / 8 = 0.347 is the floor.
  fmt::print("final loss {:.3f}, guessing is {:.3f}\n", loss_value, std::log(16.0));
  return loss_value < 0.6 ? 0 : 1;
}
