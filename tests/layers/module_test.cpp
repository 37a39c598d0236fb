// Modules: names, state, modes, and how parameters start.
#include "layers/module.h"

#include <cmath>

#include "core/ops/movement.h"
#include "layers/layers.h"
#include "tests/support/op_case.h"

namespace norma::test {
namespace {

LayerPtr mlp(std::uint64_t seed = 0) {
  LinearConfig hidden, out;
  hidden.out = 8;
  out.out = 3;
  return std::make_unique<Layers>(
      std::vector<LayerConfig>{hidden, BatchNormConfig{}, ReluConfig{}, DropoutConfig{}, out},
      Scope(seed, TorchInit{}), Signature{.shape = Shape{4}});
}

double deviation_of(const Tensor& x) {
  double sum = 0, square = 0;
  for (double v : x.to_vector()) {
    sum += v;
    square += v * v;
  }
  const auto n = static_cast<double>(x.numel());
  return std::sqrt(square / n - sum / n * sum / n);
}

template <class Init>
Tensor weight_of(const Init& init, const LayerConfig& layer, const Signature& in) {
  return find_tensor(layer.build(Scope(0, init), in)->named_parameters(), "weight")->tensor;
}

LinearConfig linear_of(std::int64_t out) {
  LinearConfig c;
  c.out = out;
  return c;
}

Conv2dConfig conv_of(std::int64_t out, std::int64_t groups) {
  Conv2dConfig c;
  c.out = out;
  c.kernel = 3;
  c.groups = groups;
  return c;
}

TEST_CASE("parameters and buffers have dotted names, in order", "[module]") {
  const LayerPtr model = mlp();
  std::string names;
  for (const NamedTensor& t : model->state_dict()) names += t.name + " ";
  CHECK(names ==
        "0.weight 0.bias 1.weight 1.bias 4.weight 4.bias "
        "1.running_mean 1.running_var 1.num_batches_tracked ");
  CHECK(model->num_parameters() == 4 * 8 + 8 + 8 + 8 + 8 * 3 + 3);
}

TEST_CASE("train() and eval() reach every layer", "[module]") {
  const LayerPtr model = mlp();
  const Tensor x = random_tensor(Shape{6, 4}, 1, DType::f32);
  model->eval();
  CHECK_FALSE(model->training());
  CHECK(same_bits((*model)(x), (*model)(x)));
  model->train();
  Forward a, b;
  a.stream = "step 0";
  b.stream = "step 1";
  CHECK_FALSE(same_bits(model->forward(x, a), model->forward(x, b)));  // dropout is on again
}

TEST_CASE("a state that does not fit changes nothing, and all is told (Blaizzy/mlx-audio#902)",
          "[module]") {
  const LayerPtr model = mlp(), other = mlp(1);
  std::vector<NamedTensor> state;
  for (const NamedTensor& t : other->state_dict()) state.push_back({t.name, t.tensor.clone()});
  const Tensor before = find_tensor(model->state_dict(), "0.weight")->tensor.clone();
  state[0].tensor = Tensor::zeros(Shape{4, 8});  // as many elements, another shape
  state[1].name = "0.baias";
  const std::string message = error_of([&] { model->load_state_dict(state); });
  CHECK(contains(message, "0.weight: expected shape (8, 4); got (4, 8)"));
  CHECK(contains(message, "missing: 0.bias (8)"));
  CHECK(contains(message, "unknown: 0.baias"));
  CHECK(same_bits(find_tensor(model->state_dict(), "0.weight")->tensor, before));
  model->load_state_dict(other->state_dict());
  CHECK(same_bits(find_tensor(model->state_dict(), "0.weight")->tensor,
                  find_tensor(other->state_dict(), "0.weight")->tensor));
}

TEST_CASE("fan in and fan out are read from the right axes (pytorch/pytorch#130122)", "[module]") {
  const Signature row{.shape = Shape{1000}};
  CHECK(deviation_of(weight_of(HeNormalInit{}, linear_of(10), row)) ==
        Approx(std::sqrt(2.0 / 1000)).epsilon(0.03));
  CHECK(deviation_of(weight_of(XavierNormalInit{}, linear_of(200), row)) ==
        Approx(std::sqrt(2.0 / 1200)).epsilon(0.03));
  CHECK(deviation_of(weight_of(TorchInit{}, linear_of(100), row)) ==
        Approx(std::sqrt(1.0 / 3000)).epsilon(0.03));
  const Signature image{.shape = Shape{16, 8, 8}}, deep{.shape = Shape{64, 8, 8}};
  CHECK(deviation_of(weight_of(HeNormalInit{}, conv_of(32, 1), image)) ==
        Approx(std::sqrt(2.0 / 144)).epsilon(0.05));
  CHECK(deviation_of(weight_of(XavierNormalInit{}, conv_of(32, 1), image)) ==
        Approx(std::sqrt(2.0 / (144 + 288))).epsilon(0.05));
  // Depth-wise: fan in 9, fan out 9, not 576.
  CHECK(deviation_of(weight_of(XavierNormalInit{}, conv_of(64, 64), deep)) ==
        Approx(std::sqrt(2.0 / 18)).epsilon(0.1));
}

TEST_CASE("an orthogonal matrix has orthonormal rows or columns", "[module]") {
  for (const std::int64_t out : {5, 20}) {
    const Tensor w = weight_of(OrthogonalInit{}, linear_of(out), {.shape = Shape{12}});
    const auto v = w.to_vector();
    const std::int64_t n = std::min<std::int64_t>(out, 12);
    for (std::int64_t a = 0; a < n; ++a) {
      for (std::int64_t b = 0; b < n; ++b) {
        double dot = 0;
        for (std::int64_t k = 0; k < (out <= 12 ? 12 : out); ++k) {
          dot += out <= 12 ? v[static_cast<std::size_t>(a * 12 + k)] *
                                 v[static_cast<std::size_t>(b * 12 + k)]
                           : v[static_cast<std::size_t>(k * 12 + a)] *
                                 v[static_cast<std::size_t>(k * 12 + b)];
        }
        CHECK(std::abs(dot - (a == b ? 1.0 : 0.0)) < 1e-6);
      }
    }
  }
}

TEST_CASE("equal layers start differently, and the same seed repeats", "[module]") {
  const auto model = [](std::uint64_t seed) {
    return std::make_unique<Layers>(std::vector<LayerConfig>{linear_of(6), linear_of(6)},
                                    Scope(seed, TorchInit{}), Signature{.shape = Shape{6}});
  };
  const auto a = model(0), b = model(0), c = model(1);
  const auto weight = [](const Module& m, const char* name) {
    return find_tensor(m.named_parameters(), name)->tensor;
  };
  CHECK_FALSE(same_bits(weight(*a, "0.weight"), weight(*a, "1.weight")));
  CHECK(same_bits(weight(*a, "0.weight"), weight(*b, "0.weight")));
  CHECK_FALSE(same_bits(weight(*a, "0.weight"), weight(*c, "0.weight")));
}

TEST_CASE("conv1d runs over the tokens of a sequence of features", "[module]") {
  Conv1dConfig config;
  config.out = 5;
  config.kernel = 3;
  config.padding = 1;
  config.stride = 2;
  const Scope scope(0, TorchInit{}, DType::f64);
  const Signature features{.shape = Shape{8, 4}, .vocab = 0, .source = {}, .features_last = true};
  const LayerPtr over_tokens = config.build(scope, features);
  const LayerPtr channels_first = config.build(scope, {.shape = Shape{4, 8}});
  CHECK(over_tokens->output().shape == Shape{4, 5});
  CHECK(over_tokens->output().features_last);
  CHECK(channels_first->output().shape == Shape{5, 4});
  const Tensor x = random_tensor(Shape{2, 8, 4}, 1);
  CHECK(same_bits((*over_tokens)(x), transpose((*channels_first)(transpose(x)))));
  NORMA_CHECK_ERROR(config.build(scope, {.shape = Shape{4}}), "channels first");
}

TEST_CASE("a layer that does not fit names its place", "[module]") {
  LinearConfig wrong = linear_of(3);
  wrong.in = 9;
  NORMA_CHECK_ERROR(Layers({linear_of(4), wrong}, Scope(0, TorchInit{}), {.shape = Shape{5}}),
                    "layer 1: linear: `in` is 9; the input has 4 features");
}

}  // namespace
}  // namespace norma::test
