// The probe: eigenvalues that are known, products that finite differences confirm, and a model that
// is as it was.
#include "apps/training/probe.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numbers>

#include "apps/training/build.h"
#include "apps/training/first_step.h"
#include "apps/training/sharpness.h"
#include "apps/training/trainer.h"
#include "core/ops/arithmetic.h"
#include "core/ops/linear.h"
#include "core/ops/losses.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"
#include "tests/support/temporary_folder.h"

namespace norma {
namespace {

using Vector = std::vector<double>;

RunConfig small_config(const std::string& placement = "pre") {
  config::Json json = config::parse_json(R"({
      "data": {"type": "shift", "vocab": 7, "length": 5},
      "model": {"type": "transformer", "layers": 3, "width": 8, "heads": 2, "hidden": 12,
                "norm": "rms_norm", "activation": "swiglu", "position": "rope", "bias": false},
      "train": {"steps": 1, "batch": 4, "precision": "f64"}})");
  config::set_path(json, "model.placement", placement);
  return parse_run_config(json);
}

struct Probed {
  RunConfig config = small_config();
  std::unique_ptr<DataSet> data = build_data(config);
  ModelPtr model = build_model(config, data->spec());
  Tensor loss() {
    const Batch batch = data->train_batch(0, 4);
    return config.loss.apply(model->forward(batch.inputs, forward_of(batch)), batch.targets);
  }
};

TEST_CASE("Lanczos finds the ends of a known spectrum") {
  // The second difference of n points has the eigenvalues 2 - 2 cos(k pi / (n + 1)), k = 1..n.
  const std::int64_t n = 40;
  const auto product = [&](const Vector& v) {
    Vector w(v.size());
    for (std::size_t i = 0; i < v.size(); ++i) {
      w[i] = 2 * v[i] - (i > 0 ? v[i - 1] : 0) - (i + 1 < v.size() ? v[i + 1] : 0);
    }
    return w;
  };
  const auto eigenvalue = [&](double k) {
    return 2 - 2 * std::cos(k * std::numbers::pi / (static_cast<double>(n) + 1));
  };
  const Extremes whole = lanczos(product, n, 40, random_key(1, "test"));
  CHECK(whole.largest == Approx(eigenvalue(40)).epsilon(1e-3));
  CHECK(whole.smallest == Approx(eigenvalue(1)).margin(4e-3));
  CHECK(whole.converged);
  CHECK_FALSE(lanczos(product, n, 3, random_key(1, "test")).converged);

  // A negative eigenvalue of larger magnitude is not taken for the largest.
  const auto diagonal = [](const Vector& v) { return Vector{-5 * v[0], 2 * v[1], v[2]}; };
  const Extremes mixed = lanczos(diagonal, 3, 10, random_key(2, "test"));
  CHECK(mixed.largest == Approx(2));
  CHECK(mixed.smallest == Approx(-5));
  CHECK(mixed.by_magnitude() == Approx(-5));

  // A product that is not finite, behind some that are: nothing is known of the ends.
  for (const double fault : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    int products = 0;
    const auto broken = [&](const Vector& v) {
      return Vector{v[0], 2 * v[1], ++products == 3 ? fault : 3 * v[2]};
    };
    const Extremes unknown = lanczos(broken, 3, 10, random_key(2, "test"));
    CHECK(std::isnan(unknown.largest));
    CHECK(std::isnan(unknown.smallest));
    CHECK_FALSE(unknown.converged);
    CHECK(unknown.products == 3);
  }
}

TEST_CASE("the Hessian of least squares is 2/N X^T X") {
  const Tensor x = test::random_tensor(Shape{6, 3}, 1), y = test::random_tensor(Shape{6, 1}, 2);
  Tensor w = test::random_tensor(Shape{1, 3}, 3);
  w.set_requires_grad();
  const Hessian hessian(mse_loss(linear(x, w), y), {w});
  const Vector data = x.to_vector();
  for (std::size_t j = 0; j < 3; ++j) {
    Vector v(3);
    v[j] = 1;
    const Vector column = hessian.product(v);
    for (std::size_t i = 0; i < 3; ++i) {
      double expected = 0;
      for (std::size_t r = 0; r < 6; ++r) expected += 2.0 / 6 * data[r * 3 + i] * data[r * 3 + j];
      CHECK(column[i] == Approx(expected));
    }
  }
}

TEST_CASE("Hessian-vector products agree with finite differences of the gradient") {
  for (const char* placement : {"pre", "post", "sandwich", "deepnorm"}) {
    INFO(placement);
    Probed p;
    p.config = small_config(placement);
    p.model = build_model(p.config, p.data->spec());
    std::vector<Tensor> parameters = p.model->parameters();
    const Hessian hessian(p.loss(), parameters);
    Vector v(static_cast<std::size_t>(hessian.size()));
    RandomStream random(random_key(3, "direction"));
    for (double& e : v) e = random.normal();
    const Vector product = hessian.product(v);

    const auto gradient_at = [&](double step) {
      const NoGrad off;
      std::size_t at = 0;
      for (Tensor& t : parameters) {
        double* w = t.mutable_data<double>();
        for (std::int64_t i = 0; i < t.numel(); ++i) w[i] += step * v[at++];
      }
      const EnableGrad on;
      return Hessian(p.loss(), parameters).gradient();
    };
    constexpr double kStep = 1e-5;
    const Vector plus = gradient_at(kStep), minus = gradient_at(-2 * kStep);
    double off = 0, size = 0;
    for (std::size_t i = 0; i < v.size(); ++i) {
      const double difference = (plus[i] - minus[i]) / (2 * kStep);
      off += std::pow(difference - product[i], 2);
      size += std::pow(product[i], 2);
    }
    CHECK(size > 0);
    CHECK(std::sqrt(off / size) < 1e-6);
  }
}

TEST_CASE("the limit of a first step, where it is known") {
  // f(x) = (x - 1)^2 / 2 from x = 0: the step is lr, and f is back where it was at lr = 2.
  const Tensor x = Tensor::zeros(Shape{1}, DType::f64);
  const auto loss = [&] { return std::pow(x.to_vector()[0] - 1, 2) / 2; };
  CHECK(first_step_limit({x}, {{-1.0}}, loss) == Approx(2).epsilon(0.05));
  CHECK(x.to_vector()[0] == 0);
  // Uphill there is no such rate, and where nothing changes there is no end.
  CHECK(first_step_limit({x}, {{1.0}}, loss) == 0);
  CHECK(std::isinf(first_step_limit({x}, {{1.0}}, [] { return 1.0; })));
  // Nothing is lower than what is no number.
  CHECK(std::isnan(first_step_limit({x}, {{1.0}}, [] { return std::nan(""); })));
}

TEST_CASE("a probe leaves the model as it was") {
  Probed p;
  p.config = parse_run_config(config::parse_json(R"({
      "data": {"type": "shift", "vocab": 7, "length": 5},
      "model": {"type": "transformer", "layers": 2, "width": 8, "heads": 2,
                "norm": "batch_norm", "dropout": 0.1},
      "train": {"steps": 1, "batch": 4}})"));
  p.model = build_model(p.config, p.data->spec());
  p.model->eval();
  std::vector<Tensor> before;
  for (const NamedTensor& t : p.model->state_dict()) before.push_back(t.tensor.clone());
  const ProbeValues values = probe(*p.model, *p.data, p.config.loss, {.batch = 4, .batches = 2});
  CHECK_FALSE(p.model->training());
  std::size_t i = 0;
  for (const NamedTensor& t : p.model->state_dict()) {
    INFO(t.name);
    CHECK(test::same_bits(t.tensor, before[i++]));
    CHECK_FALSE(t.tensor.grad().defined());
  }
  // And says the same again.
  CHECK(values == probe(*p.model, *p.data, p.config.loss, {.batch = 4, .batches = 2}));
}

TEST_CASE("the values of a probe") {
  Probed p;
  const ProbeValues values = probe(*p.model, *p.data, p.config.loss, {.batch = 4, .batches = 3});
  const auto at = [&](const char* name) { return probe_value(values, name); };
  CHECK(at("loss") == Approx(p.loss().item()));
  const Tensor down = find_tensor(p.model->state_dict(), "blocks.2.ffn.down.weight")->tensor;
  const Tensor value = p.loss();
  double squares = 0;
  for (const double g : grad(value, {down})[0].to_vector()) squares += g * g;
  CHECK(at("grad.blocks.2.ffn.down.weight") == Approx(std::sqrt(squares)));
  CHECK(at("grad.blocks.last.ffn.down.weight") == at("grad.blocks.2.ffn.down.weight"));
  CHECK(at("grad.blocks.middle.ffn.down.weight") == at("grad.blocks.1.ffn.down.weight"));
  CHECK(at("grad.blocks.first") == at("grad.blocks.0"));
  CHECK(at("mean_grad.whole") < at("grad.whole"));
  CHECK(at("sharpness") > 0);
  CHECK(at("stable_lr.sgd") == Approx(2 / at("sharpness")));
  CHECK(std::isnan(at("grad.blocks.seventh")));
  // One batch: the average is the gradient itself, and is not told twice.
  CHECK(std::isnan(probe_value(
      probe(*p.model, *p.data, p.config.loss, {.batch = 4, .batches = 1, .curvature = false}),
      "mean_grad.whole")));
}

TEST_CASE("the values of a probe of a sequential model, layer by layer") {
  Probed p;
  p.config = parse_run_config(config::parse_json(R"({
      "data": {"type": "gaussians", "features": 400, "samples": 4000},
      "model": {"type": "sequential", "layers": [
          {"type": "linear", "out": 6}, "batch_norm", "relu", {"type": "linear", "out": 3}]},
      "train": {"steps": 1, "batch": 8, "precision": "f64"}})"));
  p.data = build_data(p.config);
  p.model = build_model(p.config, p.data->spec());
  const ProbeOptions options{.batch = 8, .batches = 16, .curvature = false};
  const ProbeValues values = probe(*p.model, *p.data, p.config.loss, options);
  const auto at = [&](const char* name) { return probe_value(values, name); };
  const Vector input = p.data->train_batch(0, 8).inputs.to_vector();
  double squares = 0;
  for (const double v : input) squares += v * v;
  CHECK(at("stream.rms.input") == Approx(std::sqrt(squares / static_cast<double>(input.size()))));
  // Inputs are independent samples; BatchNorm takes the difference of their batches away.
  CHECK(at("stream.spread.input") == Approx(1 / std::sqrt(8.0)).epsilon(0.05));
  CHECK(at("stream.spread.layers.1") < 1e-10);
  CHECK(at("stream.std.layers.1") == Approx(1).epsilon(1e-3));
  CHECK(at("stream.mean.layers.2") > 0.2);
  CHECK(at("grad.layers.3") == Approx(std::hypot(at("grad.3.weight"), at("grad.3.bias"))));
  CHECK(at("grad.layers.3") > 0);
  CHECK(std::isnan(at("grad.layers.2")));
  const std::string text = probe_text(values, {{"layers.1", "batch_norm"}});
  CHECK(text.find("layers.1 batch_norm ") != std::string::npos);
  CHECK(text.find("spread") != std::string::npos);

  // At any size of a batch, down to one sample.
  p.config = parse_run_config(config::parse_json(R"({
      "data": {"type": "gaussians", "features": 400, "samples": 4000},
      "model": {"type": "sequential", "layers": [{"type": "linear", "out": 3}]},
      "train": {"steps": 1, "batch": 1, "precision": "f64"}})"));
  p.model = build_model(p.config, p.data->spec());
  for (const std::int64_t batch : {1, 2}) {
    const ProbeValues small = probe(*p.model, *p.data, p.config.loss,
                                    {.batch = batch, .batches = 64, .curvature = false});
    CHECK(probe_value(small, "stream.spread.input") ==
          Approx(1 / std::sqrt(static_cast<double>(batch))).epsilon(0.05));
  }
}

TEST_CASE("log_z is the mean |log Z| and logit.largest the largest of all blocks") {
  Probed p;
  const ProbeValues values =
      probe(*p.model, *p.data, p.config.loss, {.batch = 4, .batches = 1, .curvature = false});
  // The z-loss is the mean of (log Z)^2, and no target's log Z is far from the others' here.
  const LossConfig with = CrossEntropyConfig{.z_loss = 1};
  const Batch batch = p.data->train_batch(0, 4);
  p.model->train();
  Forward pass = forward_of(batch);
  const Tensor output = p.model->forward(batch.inputs, pass);
  const double squares =
      with.apply(output, batch.targets).item() - p.config.loss.apply(output, batch.targets).item();
  CHECK(probe_value(values, "log_z") == Approx(std::sqrt(squares)).epsilon(0.05));
  double largest = probe_value(values, "logit.blocks.0.attention");
  for (int b = 1; b < 3; ++b) {
    largest = std::max(largest, probe_value(values, fmt::format("logit.blocks.{}.attention", b)));
  }
  CHECK(probe_value(values, "logit.largest") == largest);
}

TEST_CASE("probes during training change nothing of it") {
  const TemporaryFolder folder;
  const auto train = [&](const char* name, const char* every) {
    config::Json json = config::parse_json(R"({
        "data": {"type": "shift", "vocab": 7, "length": 5},
        "model": {"type": "transformer", "layers": 2, "width": 8, "heads": 2, "dropout": 0.1,
                  "norm": "batch_norm"},
        "train": {"steps": 6, "batch": 4, "log_every": 1, "eval_every": 3, "eval_batches": 1}})");
    if (*every) config::apply_set(json, std::string("train.probe_every=") + every);
    (void)Trainer(parse_run_config(json), {.out = folder / name, .quiet = true}).run();
    std::vector<std::string> records;
    std::vector<std::int64_t> probes;
    for (config::Json record : read_metrics(folder / name + "/metrics.jsonl")) {
      record.erase("seconds");
      if (record["kind"] == "probe") {
        probes.push_back(record["step"].get<std::int64_t>());
        CHECK(record["grad.blocks.1"].get<double>() > 0);
        CHECK(record["stream.rms.blocks.1"].get<double>() > 0);
      } else {
        records.push_back(record.dump());
      }
    }
    return std::pair(records, probes);
  };
  const auto [plain, none] = train("plain", "");
  const auto [probed, steps] = train("probed", "2");
  CHECK(plain == probed);
  CHECK(none.empty());
  CHECK(steps == std::vector<std::int64_t>{0, 2, 4, 6});
}

TEST_CASE("a NaN stays visible in the values of a probe, and in their table") {
  Probed p;
  // The queries of the second head of the block in the middle.
  Tensor q = find_tensor(p.model->state_dict(), "blocks.1.attention.q.weight")->tensor;
  {
    const NoGrad off;
    q.mutable_data<double>()[q.numel() - 1] = std::nan("");
  }
  const ProbeValues values = probe(*p.model, *p.data, p.config.loss, {.batch = 4, .batches = 2});
  const auto value = [&](std::string_view name) {
    const auto at =
        std::find_if(values.begin(), values.end(), [&](const auto& v) { return v.first == name; });
    return at == values.end() ? std::nullopt : std::optional(at->second);
  };
  for (const char* name :
       {"loss", "log_z", "logit.blocks.1.attention.1", "logit.blocks.1.attention", "logit.largest",
        "grad.whole", "sharpness", "sharpness.smallest", "sharpness.adam", "stable_lr.sgd",
        "stable_lr.adam", "stable_lr.first_step"}) {
    INFO(name);
    REQUIRE(value(name));
    CHECK(std::isnan(*value(name)));
  }
  CHECK(std::isfinite(*value("logit.blocks.0.attention")));
  CHECK(std::isfinite(*value("logit.blocks.1.attention.0")));
  // The table tells it from what was not measured.
  const std::string text = probe_text(values);
  INFO(text);
  CHECK(test::contains(text, "loss nan, norm of the whole gradient nan, averaged nan\n"));
  CHECK(test::contains(text, "mean |log Z| of the output's logits nan\n"));
  CHECK(test::contains(text, "largest eigenvalue of the Hessian nan, smallest nan;"));
  CHECK(test::contains(text, "first step, which lowers the loss up to it: nan\n"));
  const std::string few = probe_text({{"loss", 1.0}});
  CHECK(test::contains(few, "loss 1, norm of the whole gradient -, averaged -\n"));
  CHECK_FALSE(test::contains(few, "nan"));
}

}  // namespace
}  // namespace norma
