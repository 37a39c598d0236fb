// Every norm of the family, through one set of checks.
#include "layers/norms.h"

#include "core/ops/arithmetic.h"
#include "core/ops/cast.h"
#include "core/ops/movement.h"
#include "core/ops/reduce.h"
#include "tests/support/op_case.h"

namespace norma::test {
namespace {

const Scope kScope(0, TorchInit{}, DType::f64);

template <class Config>
LayerPtr make(const Signature& in) {
  Config config;
  if constexpr (requires { config.groups; }) config.groups = 2;
  return config.build(kScope, in);
}

// The axes of an image (N, C, H, W) that the statistics of a norm are over; empty: none.
template <class Config>
std::vector<int> statistics_axes() {
  if (std::string_view(Config::type) == "batch_norm") return {0, 2, 3};
  if (std::string_view(Config::type) == "layer_norm") return {3};
  if (std::string_view(Config::type) == "instance_norm") return {2, 3};
  return {};
}

TEMPLATE_LIST_TEST_CASE("a norm keeps the shape, and its gradient is right", "[norms]",
                        NormConfig::Members) {
  const Signature image{.shape = Shape{4, 3, 3}};
  const LayerPtr norm = make<TestType>(image);
  const Tensor x = random_tensor(Shape{3, 4, 3, 3}, 1);
  CHECK((*norm)(x).shape() == x.shape());
  CHECK(norm->output().shape == image.shape);
  const auto f = [&](const std::vector<Tensor>& in) { return (*norm)(in[0]); };
  CHECK(check_gradient(f, {x}) == "");
  CHECK(check_second_gradient(f, {x}) == "");
}

TEMPLATE_LIST_TEST_CASE("a norm inside a transformer works on (B, T, C)", "[norms]",
                        NormConfig::Members) {
  const LayerPtr norm = make<TestType>({.shape = Shape{5, 4}, .vocab = 0, .features_last = true});
  const Tensor x = random_tensor(Shape{2, 5, 4}, 2);
  CHECK((*norm)(x).shape() == x.shape());
  for (const NamedParameter& p : norm->named_parameters()) {
    CHECK((p.tensor.shape() == Shape{4} || p.tensor.shape() == Shape{1}));
  }
}

TEMPLATE_LIST_TEST_CASE("a norm says whether a token's output depends on another token", "[norms]",
                        NormConfig::Members) {
  const LayerPtr norm = make<TestType>({.shape = Shape{5, 4}, .vocab = 0, .features_last = true});
  norm->eval();
  const Tensor x = random_tensor(Shape{1, 5, 4}, 2);
  const Tensor other = concatenate({slice(x, 1, 0, 4), random_tensor(Shape{1, 1, 4}, 3)}, 1);
  const auto first = [&](const Tensor& in) { return slice((*norm)(in), 1, 0, 4); };
  CHECK(same_bits(first(x), first(other)) == NormConfig(TestType{}).per_token());
}

TEMPLATE_LIST_TEST_CASE("mean and variance over the norm's axes are 0 and 1", "[norms]",
                        NormConfig::Members) {
  const std::vector<int> axes = statistics_axes<TestType>();
  if (axes.empty()) return;
  const LayerPtr norm = make<TestType>({.shape = Shape{4, 6, 6}});
  const Tensor x = random_tensor(Shape{3, 4, 6, 6}, 3, DType::f64, 2, 9);
  const Tensor y = (*norm)(x);
  for (double m : mean(y, Axes(std::span<const int>(axes))).to_vector()) CHECK(std::abs(m) < 1e-12);
  for (double v : var(y, Axes(std::span<const int>(axes)), {.correction = 0}).to_vector()) {
    CHECK(std::abs(v - 1) < 1e-4);  // eps
  }
}

TEMPLATE_LIST_TEST_CASE("every norm states its source, and refuses ids", "[norms]",
                        NormConfig::Members) {
  CHECK(std::string_view(TestType::doc).size() > 5);
  CHECK(std::string_view(TestType::source).size() > 3);
  if (std::string_view(TestType::type) == "none") return;
  NORMA_CHECK_ERROR(make<TestType>({.shape = Shape{8}, .vocab = 10}), "got ids");
}

TEST_CASE("BatchNorm keeps running statistics, and evaluation uses them", "[norms]") {
  const LayerPtr norm = BatchNormConfig{}.build(kScope, {.shape = Shape{1}});
  (void)(*norm)(Tensor::from(Shape{4, 1}, {1, 2, 3, 4}, DType::f64));
  const auto state = norm->state_dict();
  CHECK(find_tensor(state, "running_mean")->tensor.item() == Approx(0.25));
  CHECK(find_tensor(state, "running_var")->tensor.item() == Approx(0.9 + 0.1 * 5 / 3));
  CHECK(find_tensor(state, "num_batches_tracked")->tensor.item() == 1);
  norm->eval();
  const double y = (*norm)(Tensor::from(Shape{1, 1}, {1.25}, DType::f64)).item();
  CHECK(y == Approx((1.25 - 0.25) / std::sqrt(0.9 + 0.5 / 3 + 1e-5)));
  CHECK(find_tensor(norm->state_dict(), "num_batches_tracked")->tensor.item() == 1);
  CHECK(norm->named_parameters().size() == 2);
}

TEST_CASE("groups that do not divide the channels are refused (pytorch/pytorch#45687)", "[norms]") {
  GroupNormConfig config;
  config.groups = 4;
  NORMA_CHECK_ERROR(config.build(kScope, {.shape = Shape{6, 2, 2}}), "4 groups do not divide 6");
}

TEST_CASE("BatchNorm of padded sequences is BatchNorm of their tokens", "[norms]") {
  const Signature in{.shape = Shape{3, 4}, .vocab = 0, .features_last = true};
  const LayerPtr padded = BatchNormConfig{}.build(kScope, in);
  const LayerPtr packed = BatchNormConfig{}.build(kScope, {.shape = Shape{4}});
  const Tensor x = random_tensor(Shape{2, 3, 4}, 5, DType::f64, 1, 3);
  Forward pass;
  pass.mask = Tensor::from(Shape{2, 3}, {1, 1, 1, 1, 0, 0}, DType::u8);
  const auto tokens = [](const Tensor& t) {  // those that count
    return slice(reshape(t, Shape{6, 4}), 0, 0, 4);
  };
  CHECK(compare(tokens(padded->forward(x, pass)), (*packed)(tokens(x)), 1e-13) == "");
  for (const NamedTensor& b : padded->named_buffers()) {
    CHECK(compare(b.tensor, find_tensor(packed->named_buffers(), b.name)->tensor, 1e-14) == "");
  }
  // The statistics do not see what padding holds, and equal tokens give exactly the bias.
  Tensor other = x.clone();
  for (int i = 16; i < 24; ++i) other.mutable_data<double>()[i] = 1e6;
  CHECK(same_bits(tokens(padded->forward(other, pass)), tokens(padded->forward(x, pass))));
  const Tensor equal = padded->forward(Tensor::full(Shape{2, 3, 4}, 1234, DType::f64), pass);
  for (double v : equal.to_vector()) CHECK(v == 0);
  const auto f = [&](const std::vector<Tensor>& at) { return padded->forward(at[0], pass); };
  CHECK(check_gradient(f, {x}) == "");
  CHECK(check_second_gradient(f, {x}) == "");
  padded->eval();
  CHECK(same_bits(padded->forward(x, pass), (*padded)(x)));
  padded->train();
  pass.mask = Tensor::from(Shape{2, 3}, {1, 0, 0, 0, 0, 0}, DType::u8);
  NORMA_CHECK_ERROR(padded->forward(x, pass),
                    "more than one token that counts to take statistics of; got 1 of the 6");
}

TEST_CASE("BatchNorm without `masked` takes padding for tokens", "[norms]") {
  const Signature in{.shape = Shape{3, 4}, .vocab = 0, .features_last = true};
  BatchNormConfig config;
  config.masked = false;
  const LayerPtr norm = config.build(kScope, in), plain = BatchNormConfig{}.build(kScope, in);
  const Tensor x = random_tensor(Shape{2, 3, 4}, 5, DType::f64, 1, 3);
  Forward pass;
  pass.mask = Tensor::from(Shape{2, 3}, {1, 1, 1, 1, 0, 0}, DType::u8);
  CHECK(same_bits(norm->forward(x, pass), (*plain)(x)));
}

TEST_CASE("statistics in the type of the input: every step rounds", "[norms]") {
  const Scope half(0, TorchInit{}, DType::f32);
  const auto bf16 = [](double v) { return to(Tensor::scalar(v), DType::bf16).item(); };
  constexpr int kSize = 12;
  Tensor x = to(random_tensor(Shape{1, kSize}, 8, DType::f32, -1, 5), DType::bf16);
  const std::vector<double> values = x.to_vector();
  const auto by_hand = [&](bool centre, double eps) {
    double mean = 0, squares = 0;
    for (const double v : values) mean += centre ? v : 0;
    mean = bf16(bf16(mean) / kSize);
    std::vector<double> y;
    for (const double v : values) {
      y.push_back(centre ? bf16(v - mean) : v);
      squares += bf16(y.back() * y.back());
    }
    const double rms = bf16(std::sqrt(bf16(bf16(bf16(squares) / kSize) + eps)));
    for (double& v : y) v = bf16(v / rms);
    return y;
  };
  RmsNormConfig rms;
  rms.statistics = Statistics::input;
  CHECK((*rms.build(half, {.shape = Shape{kSize}}))(x).to_vector() == by_hand(false, rms.eps));
  LayerNormConfig layer;
  layer.statistics = Statistics::input;
  CHECK((*layer.build(half, {.shape = Shape{kSize}}))(x).to_vector() == by_hand(true, layer.eps));
  // f32 statistics are another thing in bf16, and the same thing in f32.
  layer.statistics = Statistics::f32;
  const LayerPtr wide = layer.build(half, {.shape = Shape{kSize}});
  CHECK((*wide)(x).to_vector() != by_hand(true, layer.eps));
  layer.statistics = Statistics::input;
  const Tensor full = to(x, DType::f32);
  CHECK(same_bits((*layer.build(half, {.shape = Shape{kSize}}))(full), (*wide)(full)));
  x.set_requires_grad();
  const Tensor gain = (*rms.build(half, {.shape = Shape{kSize}}))(x);
  CHECK(grad(sum(gain * gain * gain), {x})[0].to_vector().size() == kSize);
}

TEST_CASE("InstanceNorm of a padded sequence is InstanceNorm of its tokens", "[norms]") {
  InstanceNormConfig config;
  config.affine = config.track = true;
  const Signature in{.shape = Shape{4, 3}, .vocab = 0, .source = {}, .features_last = true};
  const LayerPtr padded = config.build(kScope, in), alone = config.build(kScope, in);
  const Tensor x = random_tensor(Shape{2, 4, 3}, 5, DType::f64, 1, 3);
  Forward pass;
  pass.mask = Tensor::from(Shape{2, 4}, {1, 1, 0, 0, 1, 1, 1, 0}, DType::u8);
  const auto first = [&](std::int64_t tokens) { return slice(slice(x, 0, 0, 1), 1, 0, tokens); };
  const Tensor y = padded->forward(x, pass);
  CHECK(compare(slice(slice(y, 0, 0, 1), 1, 0, 2), (*alone)(first(2)), 1e-13) == "");
  // Running statistics: each sample's mean and unbiased variance over its tokens, then the mean.
  const auto values = x.to_vector();
  for (std::size_t c = 0; c < 3; ++c) {
    double mean = 0, var = 0;
    for (const std::vector<std::size_t>& tokens :
         {std::vector<std::size_t>{0, 1}, std::vector<std::size_t>{4, 5, 6}}) {
      double own = 0, squares = 0;
      for (std::size_t t : tokens) own += values[3 * t + c] / static_cast<double>(tokens.size());
      for (std::size_t t : tokens) squares += std::pow(values[3 * t + c] - own, 2);
      mean += own / 2;
      var += squares / static_cast<double>(tokens.size() - 1) / 2;
    }
    const auto buffers = padded->named_buffers();
    CHECK(find_tensor(buffers, "running_mean")->tensor.to_vector()[c] == Approx(0.1 * mean));
    CHECK(find_tensor(buffers, "running_var")->tensor.to_vector()[c] == Approx(0.9 + 0.1 * var));
  }
  // Padding is not seen, equal tokens give exactly the bias, and channels may come first.
  Tensor other = x.clone();
  for (int i = 6; i < 12; ++i) other.mutable_data<double>()[i] = 1e6;
  const auto head = [](const Tensor& t) { return slice(slice(t, 0, 0, 1), 1, 0, 2); };
  CHECK(same_bits(head(padded->forward(other, pass)), head(y)));
  CHECK_FALSE(same_bits(head((*padded)(other)), head((*padded)(x))));
  for (double v : padded->forward(Tensor::full(x.shape(), 1234, DType::f64), pass).to_vector()) {
    CHECK(v == 0);
  }
  const LayerPtr images = config.build(kScope, {.shape = Shape{3, 4}});
  CHECK(same_bits(transpose(images->forward(transpose(x), pass)), y));
  const auto f = [&](const std::vector<Tensor>& at) { return padded->forward(at[0], pass); };
  CHECK(check_gradient(f, {x}) == "");
  CHECK(check_second_gradient(f, {x}) == "");
  pass.mask = Tensor::from(Shape{2, 4}, {0, 0, 0, 0, 1, 0, 0, 0}, DType::u8);
  NORMA_CHECK_ERROR(padded->forward(x, pass), "more than one token that counts");
}

TEST_CASE("one value a channel is refused in training, and becomes the bias in evaluation",
          "[norms]") {
  NORMA_CHECK_ERROR(InstanceNormConfig{}.build(kScope, {.shape = Shape{4}}), "channels and space");
  NORMA_CHECK_ERROR(InstanceNormConfig{}.build(kScope, {.shape = Shape{3, 1, 1}}),
                    "more than one value a channel");
  const Signature in{.shape = Shape{4, 3}, .vocab = 0, .source = {}, .features_last = true};
  InstanceNormConfig instance;
  BatchNormConfig batch;
  batch.track = false;
  for (const LayerPtr& norm : {instance.build(kScope, in), batch.build(kScope, in)}) {
    const Tensor one = random_tensor(Shape{1, 1, 3}, 5);
    NORMA_CHECK_ERROR((*norm)(one), "more than one value a channel");
    norm->eval();
    for (double v : (*norm)(one).to_vector()) CHECK(v == 0);
  }
}

TEST_CASE("ScaleNorm of zeros is zero in half types, too", "[norms]") {
  for (DType type : {DType::bf16, DType::f16}) {
    const Scope scope(0, TorchInit{}, type);
    const LayerPtr norm = ScaleNormConfig{}.build(scope, {.shape = Shape{16}});
    for (double v : (*norm)(Tensor::zeros(Shape{2, 16}, type)).to_vector()) CHECK(v == 0);
    // Shorter than eps, and a square sum beyond the range of f16.
    const Tensor y = (*norm)(Tensor::full(Shape{1, 16}, 300, type));
    for (double v : y.to_vector()) CHECK(v == 1);
  }
}

TEST_CASE("the output of ScaleNorm has the learned length, and zero stays zero", "[norms]") {
  const LayerPtr norm = ScaleNormConfig{}.build(kScope, {.shape = Shape{16}});
  const Tensor y = (*norm)(random_tensor(Shape{5, 16}, 4, DType::f64, 1, 3));
  for (double length : norma::norm(y, {-1}).to_vector()) CHECK(length == Approx(4.0));
  Tensor zero = Tensor::zeros(Shape{2, 16}, DType::f64);
  zero.set_requires_grad();
  const Tensor at_zero = (*norm)(zero);
  for (double v : at_zero.to_vector()) CHECK(v == 0);
  backward(sum(at_zero));
  for (double g : zero.grad().to_vector()) CHECK(g == Approx(4 / 1e-5));
}

TEST_CASE("the output of RMSNorm lies on a sphere of radius sqrt(n)", "[norms]") {
  const LayerPtr norm = RmsNormConfig{}.build(kScope, {.shape = Shape{16}});
  const Tensor y = (*norm)(random_tensor(Shape{5, 16}, 4, DType::f64, 1, 3));
  for (double length : norma::norm(y, {-1}).to_vector()) CHECK(length == Approx(4.0).epsilon(1e-5));
}

}  // namespace
}  // namespace norma::test
