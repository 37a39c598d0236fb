// Every placement trains: the small model of docs/placements.md, on three seeds.
#include "core/flat.h"
#include "core/ops/cross_entropy.h"
#include "models/transformer.h"
#include "optim/optimizers.h"
#include "tests/support/op_case.h"

namespace norma::test {
namespace {

constexpr std::int64_t kVocab = 16, kLength = 8, kBatch = 16, kSteps = 200;

TransformerConfig small(const PlacementConfig& placement) {
  TransformerConfig c;
  c.layers = 6;
  c.width = 32;
  c.heads = 2;
  c.hidden = 64;
  c.norm = RmsNormConfig{};
  c.activation = SwigluConfig{};
  c.position = RopePositionConfig{};
  c.bias = false;
  c.placement = placement;
  if (!placement.get_if<DeepNormPlacement>()) c.init = TorchInit{};
  return c;
}

// Random ids, and the same turned right by one: each place asks for the token before.
std::pair<Tensor, Tensor> batch(std::uint64_t seed, std::int64_t step) {
  std::vector<std::int64_t> ids, targets;
  const Tensor random =
      random_tensor(Shape{kBatch * kLength}, seed * 100000 + static_cast<std::uint64_t>(step) + 1,
                    DType::f64, 0, kVocab);
  for (double v : random.to_vector()) ids.push_back(static_cast<std::int64_t>(v));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    targets.push_back(ids[i % kLength == 0 ? i + kLength - 1 : i - 1]);
  }
  return {Tensor::from_ids(Shape{kBatch, kLength}, ids),
          Tensor::from_ids(Shape{kBatch, kLength}, targets)};
}

// The mean of the last 10 losses.
double final_loss(const PlacementConfig& placement, std::uint64_t seed) {
  const ModelPtr model = small(placement).build(seed, {.shape = Shape{kLength}, .vocab = kVocab});
  AdamWConfig adamw;
  adamw.lr = 3e-3;
  const auto parameters = flatten(model->named_parameters());
  const OptimizerPtr optimizer = make_optimizer(OptimizerConfig(adamw), parameters);
  model->profile(batch(seed, 0).first, {});
  double last = 0;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    const auto [ids, targets] = batch(seed, step);
    parameters->clear_gradients();
    const Tensor loss = cross_entropy((*model)(ids), targets);
    backward(loss);
    optimizer->step(adamw.lr);
    if (step >= kSteps - 10) last += loss.item() / 10;
  }
  return last;
}

TEMPLATE_LIST_TEST_CASE("every placement trains the small model on three seeds",
                        "[placements][.slow]", PlacementConfig::Members) {
  for (const std::uint64_t seed : {0, 1, 2}) {
    const double loss = final_loss(TestType{}, seed);
    fmt::print("{:<10} seed {}: {:.3f}\n", TestType::type, seed, loss);
    CHECK(loss < 0.45);
  }
}

}  // namespace
}  // namespace norma::test
