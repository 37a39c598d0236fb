// Twenty steps of training against PyTorch: forward, backward, clipping, warm-up and AdamW
// together.
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/config/json.h"
#include "core/file.h"
#include "core/ops/cross_entropy.h"
#include "models/transformer.h"
#include "optim/clipping.h"
#include "optim/optimizers.h"
#include "optim/schedules.h"
#include "tests/support/op_case.h"
#include "tests/support/paths.h"

namespace norma::test {
namespace {

TEST_CASE("twenty losses and gradient norms as PyTorch has them, in f64", "[golden]") {
  const std::string path = test::source_dir() + "/tests/models/golden_run.json";
  const config::Json golden = config::parse_json(read_file(path), path);
  const std::int64_t length = golden.at("length"), batch = golden.at("batch");
  const std::int64_t vocab = golden.at("vocab");

  TransformerConfig config;
  config.layers = golden.at("layers").get<std::int64_t>();
  config.width = golden.at("width");
  config.heads = golden.at("heads");
  config.hidden = golden.at("hidden").get<std::int64_t>();
  config.tied = true;
  const ModelPtr model = config.build(0, {.shape = Shape{length}, .vocab = vocab}, DType::f64);
  std::vector<NamedTensor> state;
  for (const auto& [name, t] : golden.at("state").items()) {
    Shape shape;
    for (std::int64_t s : t.at("shape")) shape.push_back(s);
    state.push_back(
        {name, Tensor::from(shape, t.at("data").get<std::vector<double>>(), DType::f64)});
  }
  model->load_state_dict(state);

  AdamWConfig adamw;
  adamw.betas = {0.9, 0.99};
  adamw.weight_decay = 0.1;
  adamw.no_decay = std::vector<std::string>{};
  ConstantScheduleConfig constant;
  constant.warmup_steps = 5;
  const FlatParametersPtr parameters = flatten(model->named_parameters());
  const OptimizerPtr optimizer = make_optimizer(OptimizerConfig(adamw), parameters);
  const auto steps = static_cast<std::int64_t>(golden.at("losses").size());
  const SchedulePtr schedule = make_schedule(ScheduleConfig(constant), 1e-2, steps);

  for (std::int64_t t = 0; t < steps; ++t) {
    const auto at = static_cast<std::size_t>(t);
    const auto ids = golden.at("inputs").at(at).get<std::vector<std::int64_t>>();
    std::vector<std::int64_t> targets(ids.size());
    for (std::int64_t i = 0; i < batch * length; ++i) {
      const std::int64_t row = i / length * length;
      targets[static_cast<std::size_t>(i)] =
          ids[static_cast<std::size_t>(row + (i - row + length - 1) % length)];
    }
    const Shape shape{batch, length};
    const Tensor loss =
        cross_entropy((*model)(Tensor::from_ids(shape, ids)), Tensor::from_ids(shape, targets));
    optimizer->clear_gradients();
    backward(loss);
    const Clipped clipped = clip_gradients(*parameters, {.clip_norm = 0.5});
    optimizer->step(schedule->rate(t), clipped.grad_scale);
    INFO("step " << t);
    CHECK(std::abs(loss.item() - golden.at("losses").at(at).get<double>()) < 1e-9);
    CHECK(std::abs(clipped.norm - golden.at("grad_norms").at(at).get<double>()) < 1e-9);
  }
}

}  // namespace
}  // namespace norma::test
