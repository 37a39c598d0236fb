// Every layer in bf16 and f16: loss and gradients near those of f32, with parameters in f32.
#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>
#include <type_traits>

#include "core/flat.h"
#include "core/ops/cast.h"
#include "layers/losses.h"
#include "models/models.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"

namespace norma::test {
namespace {

struct Result {
  double loss;
  std::vector<NamedTensor> gradients;
};

Result run(const ModelConfig& config, const Signature& in, std::optional<DType> half,
           double loss_scale) {
  const ModelPtr model = config.build(1, in);
  const FlatParametersPtr flat = flatten(model->named_parameters(), half);
  Tensor x;
  std::int64_t samples = 4;
  if (in.vocab > 0) {
    std::vector<std::int64_t> ids;
    for (std::int64_t i = 0; i < samples * in.shape.numel(); ++i) ids.push_back(i * 7 % in.vocab);
    x = Tensor::from_ids(Shape{samples, in.shape[0]}, ids);
  } else {
    Shape shape{samples};
    for (std::int64_t n : in.shape) shape.push_back(n);
    x = random_tensor(shape, 5, DType::f32);
  }
  Forward pass;
  pass.seed = 3;
  pass.stream = "step 0/batch 0";
  const Tensor y = model->forward(x, pass);
  CHECK(y.dtype() == half.value_or(DType::f32));
  std::vector<std::int64_t> target;
  for (std::int64_t i = 0; i < y.numel() / y.size(-1); ++i) target.push_back(i % y.size(-1));
  const LossConfig loss;
  const Tensor l = loss.apply(y, Tensor::from_ids(y.shape().sub(0, y.rank() - 1), target));
  CHECK(l.dtype() == DType::f32);
  backward(l, Tensor::scalar(loss_scale));
  Result result{l.item(), {}};
  for (const NamedParameter& p : model->named_parameters()) {
    REQUIRE(p.tensor.grad().defined());
    CHECK(p.tensor.grad().dtype() == DType::f32);
    result.gradients.push_back({p.name, p.tensor.grad().clone()});
  }
  for (const NamedTensor& b : model->named_buffers()) CHECK(!is_half(b.tensor.dtype()));
  return result;
}

// |a - b| / |b|, over all elements of all gradients.
double difference(const Result& a, const Result& b, double scale) {
  double off = 0, whole = 0;
  for (std::size_t i = 0; i < b.gradients.size(); ++i) {
    const auto x = a.gradients[i].tensor.to_vector(), y = b.gradients[i].tensor.to_vector();
    for (std::size_t k = 0; k < y.size(); ++k) {
      off += std::pow(x[k] / scale - y[k], 2);
      whole += y[k] * y[k];
    }
  }
  return std::sqrt(off / whole);
}

void check_near(const std::string& json, const Signature& in) {
  INFO(json);
  const ModelConfig config = config::parse<ModelConfig>(config::parse_json(json), "model");
  const Result exact = run(config, in, {}, 1);
  const Result bf16 = run(config, in, DType::bf16, 1), f16 = run(config, in, DType::f16, 256);
  CHECK(bf16.loss == Approx(exact.loss).epsilon(0.02));
  CHECK(f16.loss == Approx(exact.loss).epsilon(0.004));
  CHECK(difference(bf16, exact, 1) < 0.08);
  CHECK(difference(f16, exact, 256) < 0.012);
  // The control: half types are what ran.
  CHECK(difference(bf16, exact, 1) > 1e-4);
  CHECK(difference(f16, exact, 256) > 1e-5);
}

// The members of a family as JSON, from the program's own list, so that a new one is tested too.
template <class... Configs>
std::vector<std::string> texts_of(std::type_identity<std::tuple<Configs...>>) {
  const auto text = []<class Config>(std::type_identity<Config>) {
    config::Json json{{"type", Config::type}};
    if constexpr (requires { Config::groups; }) json["groups"] = 2;
    return json.dump();
  };
  return {text(std::type_identity<Configs>{})...};
}
template <class Family>
std::vector<std::string> members_of() {
  return texts_of(std::type_identity<typename Family::Members>{});
}

TEST_CASE("every layer of a sequential model runs in bf16 and f16", "[half]") {
  const Signature images{.shape = Shape{2, 8, 8}};
  const std::string head = R"({"type": "global_avg_pool"}, {"type": "linear", "out": 5}]})";
  const std::string start = R"({"type": "sequential", "layers": [)";
  for (const std::string& norm : members_of<NormConfig>()) {
    check_near(start +
                   R"({"type": "conv2d", "out": 8, "kernel": 3, "padding": 1, "bias": true}, )" +
                   norm + R"(, "relu", {"type": "max_pool2d", "kernel": 2},
                 {"type": "residual", "body": [{"type": "conv2d", "out": 8, "kernel": 3, "padding": 1,
                  "groups": 2}, "silu"]}, {"type": "avg_pool2d", "kernel": 2}, )" +
                   head,
               images);
  }
  const Signature series{.shape = Shape{3, 16}};
  check_near(start + R"({"type": "conv1d", "out": 6, "kernel": 3, "stride": 2}, "gelu", "flatten",
                         {"type": "linear", "out": 5}]})",
             series);
  const Signature ids{.shape = Shape{12}, .vocab = 9};
  for (const std::string& norm : members_of<NormConfig>()) {
    check_near(start + R"({"type": "embedding", "out": 16}, )" + norm +
                   R"(, {"type": "attention", "heads": 2, "causal": true},
                     {"type": "dropout", "p": 0.2}, {"type": "linear", "out": 9}]})",
               ids);
  }
  for (const std::string& activation : members_of<config::OneOf<ActivationConfigs>>()) {
    check_near(start + R"({"type": "linear", "out": 12}, )" + activation +
                   R"(, {"type": "linear", "out": 5}]})",
               Signature{.shape = Shape{7}});
  }
}

TEST_CASE("recurrent models run in bf16 and f16", "[half]") {
  const Signature in{.shape = Shape{12}, .vocab = 16};
  for (const char* cell : {"lstm", "gru"}) {
    check_near(
        R"({"type": "recurrent", "layers": 2, "hidden": 24, "width": 16, "norm": "layer_norm",
                   "cell": ")" +
            std::string(cell) + "\"}",
        in);
  }
}

TEST_CASE("every placement, position and feed-forward of a transformer runs in bf16 and f16",
          "[half]") {
  const Signature in{.shape = Shape{12}, .vocab = 16};
  const auto model = [](const std::string& more) {
    return R"({"type": "transformer", "layers": 2, "width": 32, "heads": 4, "hidden": 48,
               "dropout": 0.1, )" +
           more + "}";
  };
  for (const std::string& placement : members_of<PlacementConfig>()) {
    check_near(model(R"("placement": )" + placement), in);
  }
  for (const std::string& position : members_of<PositionConfig>()) {
    check_near(model(R"("kv_heads": 2, "activation": "swiglu", "norm": "rms_norm", "tied": true,
                        "qk_norm": {"norm": "rms_norm", "over": "head"}, "bias": true,
                        "position": )" +
                     position),
               in);
  }
  for (const std::string& activation : members_of<FeedForwardActivation>()) {
    check_near(model(R"("activation": )" + activation), in);
  }
}

}  // namespace
}  // namespace norma::test
