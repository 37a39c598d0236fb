// What an output sees, against models of which it is known, and against direct computation.
#include "apps/training/sees.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/training/probe.h"
#include "apps/training/rounding.h"
#include "core/flat.h"
#include "core/ops/arithmetic.h"
#include "core/ops/cast.h"
#include "tests/apps/training/support.h"
#include "tests/support/op_case.h"

namespace norma::test {
namespace {

struct Built {
  explicit Built(const Json& json)
      : config(parse_run_config(json)),
        data(build_data(config)),
        model(build_model(config, data->spec())) {}
  RunConfig config;
  std::unique_ptr<DataSet> data;
  ModelPtr model;
};

Built points(const char* layers) {
  Json json = Json::parse(R"({"data": {"type": "gaussians", "features": 5, "samples": 60},
      "model": {"type": "sequential"}, "train": {"steps": 1, "batch": 4, "precision": "f64"}})");
  json["model"]["layers"] = Json::parse(layers);
  return Built(json);
}

Built sequences(const char* norm, const char* kind, const char* data = "shift") {
  Json json = Json::parse(R"({"data": {"vocab": 7, "length": 6},
      "model": {"type": "transformer", "layers": 2, "width": 8, "heads": 2, "dropout": 0.3,
                "attention_dropout": 0.3},
      "train": {"steps": 1, "batch": 4, "precision": "f64"}})");
  json["data"]["type"] = data;
  json["model"]["norm"] = Json::parse(norm);
  json["model"]["kind"] = kind;
  return Built(json);
}

// NaN where there is no such value.
double seen(const Built& b, const char* what, std::int64_t batch = 4) {
  return probe_value(sees(*b.model, *b.data, batch), what);
}

double relative(const std::vector<double>& x, const std::vector<double>& from) {
  double moved = 0, size = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    moved += std::pow(x[i] - from[i], 2);
    size += from[i] * from[i];
  }
  return std::sqrt(moved / size);
}

TEST_CASE("a sample sees its batch through BatchNorm, and through no other norm") {
  const Built batch = points(R"([{"type": "linear", "out": 6}, "batch_norm",
                                 {"type": "linear", "out": 3}])");
  // By hand: the first sample of batch 0 among the others of batch 1.
  Batch first = batch.data->train_batch(0, 4), other = batch.data->train_batch(1, 4);
  const auto outputs = [&](const Batch& b) {
    std::vector<double> y = batch.model->forward(b.inputs, {}).to_vector();
    y.resize(3);
    return y;
  };
  const std::vector<double> alone = outputs(first);
  for (int f = 0; f < 5; ++f) {
    other.inputs.mutable_data<float>()[f] = first.inputs.data<float>()[f];
  }
  CHECK(seen(batch, "sees.batch") == Approx(relative(outputs(other), alone)));
  CHECK(seen(batch, "sees.batch") > 0.01);
  CHECK(std::isnan(seen(points(R"([{"type": "linear", "out": 3}])"), "sees.batch", 1)));
  for (const char* norm : {"layer_norm", "rms_norm", "none", "dyt"}) {
    INFO(norm);
    const Built b = points(fmt::format(R"([{{"type": "linear", "out": 6}}, "{}",
                                           {{"type": "dropout", "p": 0.5}},
                                           {{"type": "linear", "out": 3}}])",
                                       norm)
                               .c_str());
    CHECK(seen(b, "sees.batch") == 0);
    CHECK(std::isnan(seen(b, "sees.padding")));
    CHECK(std::isnan(seen(b, "sees.later")));
  }
}

TEST_CASE("an output sees the scale and the shift of its inputs, unless a norm takes them away") {
  const Built plain = points(R"([{"type": "linear", "out": 16, "bias": false}, "relu",
                                 {"type": "linear", "out": 3, "bias": false}])");
  CHECK(seen(plain, "sees.scale") == 1);  // 2 y
  const Tensor x = plain.data->train_batch(0, 4).inputs;
  CHECK(seen(plain, "sees.shift") == Approx(relative(plain.model->forward(x + 1.0, {}).to_vector(),
                                                     plain.model->forward(x, {}).to_vector())));
  const auto after = [](const char* norm) {
    return points(
        fmt::format(R"([{{"type": "{}", "eps": 0}}, {{"type": "linear", "out": 3}}])", norm)
            .c_str());
  };
  CHECK(seen(after("layer_norm"), "sees.scale") < 1e-12);
  CHECK(seen(after("layer_norm"), "sees.shift") < 1e-6);  // x + 1 is rounded, in f32
  CHECK(seen(after("rms_norm"), "sees.scale") < 1e-12);
  CHECK(seen(after("rms_norm"), "sees.shift") > 0.1);
  CHECK(seen(after("batch_norm"), "sees.shift") < 1e-6);
  // The batch's scale is no news to BatchNorm; that of one sample is.
  CHECK(seen(after("batch_norm"), "sees.scale") < 1e-12);
  CHECK(seen(after("batch_norm"), "sees.contrast") > 0.1);
  CHECK(seen(after("layer_norm"), "sees.contrast") < 1e-12);
  CHECK(seen(plain, "sees.contrast") == 1);
}

TEST_CASE("a token sees later ones in an encoder, and in a decoder through BatchNorm alone") {
  CHECK(seen(sequences(R"("layer_norm")", "decoder"), "sees.later") == 0);
  CHECK(seen(sequences(R"("layer_norm")", "encoder"), "sees.later") > 1e-3);
  CHECK(seen(sequences(R"("batch_norm")", "decoder"), "sees.later") > 1e-3);
  const Built ids = sequences(R"("layer_norm")", "decoder");
  CHECK(std::isnan(seen(ids, "sees.scale")));
  CHECK(seen(ids, "sees.batch") == 0);
  // A source is translated: the answer's later ids are not seen, and the source is no answer.
  CHECK(seen(sequences(R"("rms_norm")", "encoder_decoder", "reverse"), "sees.later") == 0);
}

TEST_CASE("padding is seen by a BatchNorm that does not leave it out") {
  for (const char* kind : {"decoder", "encoder"}) {
    INFO(kind);
    CHECK(seen(sequences(R"("layer_norm")", kind), "sees.padding") < 1e-14);
    CHECK(seen(sequences(R"("batch_norm")", kind), "sees.padding") < 1e-14);
    const char* torch_like = R"({"type": "batch_norm", "masked": false})";
    CHECK(seen(sequences(torch_like, kind), "sees.padding") > 1e-3);
  }
}

TEST_CASE("rounding is the distance from the same model in f64") {
  const auto at = [](const char* precision, const char* what) {
    Json json = shift_config(1);
    json["train"]["precision"] = precision;
    Built b(json);
    const FlatParametersPtr flat =
        flatten(b.model->named_parameters(), half_type(b.config.train.precision));
    const ModelPtr exact = build_exact_model(b.config, b.data->spec());
    const ProbeValues values = rounding(*b.model, *exact, b.data->train_batch(0, 8), b.config.loss);
    // The weights are those that the model computes with.
    for (const NamedTensor& p : exact->state_dict()) {
      const Tensor here = find_tensor(b.model->state_dict(), p.name)->tensor;
      CHECK(p.tensor.to_vector() == here.to_vector());
    }
    return probe_value(values, what);
  };
  CHECK(at("f64", "rounding.output") == 0);
  CHECK(at("f64", "rounding.grad") == 0);
  for (const char* what : {"rounding.output", "rounding.grad"}) {
    INFO(what);
    const double f32 = at("f32", what), f16 = at("f16", what), bf16 = at("bf16", what);
    CHECK((f32 > 1e-9 && f32 < 3e-6));
    CHECK((f16 > 1e-4 && f16 < 1e-2));
    CHECK((bf16 > 3 * f16 && bf16 < 20 * f16));  // three bits less
  }
}

TEST_CASE("one product in bf16: its rounding by hand") {
  Json json = Json::parse(R"({"data": {"type": "gaussians", "features": 5, "samples": 60},
      "model": {"type": "sequential", "layers": [{"type": "linear", "out": 3, "bias": false}]},
      "train": {"steps": 1, "batch": 4, "precision": "bf16"}})");
  Built b(json);
  const FlatParametersPtr flat = flatten(b.model->named_parameters(), DType::bf16);
  const Batch batch = b.data->train_batch(0, 4);
  const Tensor w = b.model->parameters()[0];
  const std::vector<double> x = batch.inputs.to_vector(), weights = w.to_vector();
  const std::vector<double> rounded = to(batch.inputs, DType::bf16).to_vector();
  std::vector<double> exact, narrow;
  for (std::size_t n = 0; n < 4; ++n) {
    for (std::size_t o = 0; o < 3; ++o) {
      double full = 0, half = 0;
      for (std::size_t i = 0; i < 5; ++i) {
        full += x[n * 5 + i] * weights[o * 5 + i];
        half += rounded[n * 5 + i] * weights[o * 5 + i];
      }
      exact.push_back(full);
      narrow.push_back(to(Tensor::scalar(half), DType::bf16).item());
    }
  }
  const ModelPtr model = build_exact_model(b.config, b.data->spec());
  const ProbeValues values = rounding(*b.model, *model, batch, b.config.loss);
  CHECK(probe_value(values, "rounding.output") == Approx(relative(narrow, exact)));
}

}  // namespace
}  // namespace norma::test
