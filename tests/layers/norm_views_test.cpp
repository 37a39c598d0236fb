// What a norm may see: which other tokens, samples and units an output depends on, and what it is
// blind to.
#include <algorithm>
#include <cmath>

#include "core/ops/arithmetic.h"
#include "core/ops/linear.h"
#include "core/ops/movement.h"
#include "core/ops/reduce.h"
#include "layers/block.h"
#include "layers/norms.h"
#include "tests/support/op_case.h"

namespace norma::test {
namespace {

const Scope kScope(0, TorchInit{}, DType::f64);

template <class Config>
bool is(const char* type) {
  return std::string_view(Config::type) == type;
}

template <class Config>
LayerPtr build(const Signature& in) {
  Config config;
  if constexpr (requires { config.groups; }) config.groups = 2;
  return config.build(kScope, in);
}

// x with `by` added to the elements from `first` on.
Tensor changed_from(const Tensor& x, std::int64_t first, double by = 1) {
  std::vector<double> values = x.to_vector();
  for (std::size_t i = static_cast<std::size_t>(first); i < values.size(); ++i) values[i] += by;
  return Tensor::from(x.shape(), values, x.dtype());
}

bool starts_alike(const Tensor& a, const Tensor& b, std::int64_t elements) {
  const auto x = a.to_vector(), y = b.to_vector();
  return std::equal(x.begin(), x.begin() + elements, y.begin());
}

// Among the first `elements`.
double largest_change(const Tensor& a, const Tensor& b, std::size_t elements) {
  const auto x = a.to_vector(), y = b.to_vector();
  double most = 0;
  for (std::size_t i = 0; i < elements; ++i) most = std::max(most, std::abs(x[i] - y[i]));
  return most;
}

TEMPLATE_LIST_TEST_CASE("a later token is seen by norms over time alone", "[norms]",
                        NormConfig::Members) {
  const LayerPtr norm = build<TestType>({.shape = Shape{4, 6}, .vocab = 0, .features_last = true});
  const Tensor x = random_tensor(Shape{1, 4, 6}, 1);
  const Tensor other = changed_from(x, 3 * 6 + 1);  // in the last token
  const bool sees = is<TestType>("batch_norm") || is<TestType>("instance_norm");
  CHECK(starts_alike((*norm)(x), (*norm)(other), 3 * 6) == !sees);
}

TEMPLATE_LIST_TEST_CASE("in a decoder's block, too: the earlier tokens of every sample stay",
                        "[norms]", NormConfig::Members) {
  for (const PlacementConfig& placement :
       {PlacementConfig(PostPlacement{}), PlacementConfig(PrePlacement{})}) {
    BlockOptions options;
    options.attention.causal = true;
    options.feed_forward.hidden = 8;
    TestType norm;
    if constexpr (requires { norm.groups; }) norm.groups = 2;
    options.norm = norm;
    options.placement = placement;
    const Signature in{.shape = Shape{4, 6}, .vocab = 0, .source = {}, .features_last = true};
    Block block(options, kScope, in);
    const auto run = [&](const Tensor& x) { return block.forward({.x = x, .second = {}}, {}).x; };
    const Tensor x = random_tensor(Shape{1, 4, 6}, 1);
    const Tensor y = run(x), other = run(changed_from(x, 3 * 6 + 1));
    const bool sees = is<TestType>("batch_norm") || is<TestType>("instance_norm");
    CHECK((largest_change(y, other, 3 * 6) > 1e-3) == sees);
    CHECK(starts_alike(y, other, 3 * 6) == !sees);
    CHECK_FALSE(starts_alike(y, other, 4 * 6));
  }
}

TEMPLATE_LIST_TEST_CASE("batch mates are seen by BatchNorm alone, and in training alone", "[norms]",
                        NormConfig::Members) {
  const LayerPtr norm = build<TestType>({.shape = Shape{4, 3, 3}});
  const Tensor x = random_tensor(Shape{2, 4, 3, 3}, 1);
  const Tensor other = changed_from(x, 36 + 5);  // in the second sample
  CHECK(starts_alike((*norm)(x), (*norm)(other), 36) == !is<TestType>("batch_norm"));
  norm->eval();
  CHECK(starts_alike((*norm)(x), (*norm)(other), 36));
}

// The table of Zhang & Sennrich 2019 (arXiv 1910.07467), for N(W x) with x (samples, in).
struct Change {
  const char* name;
  bool batch_norm, layer_norm, rms_norm;  // unmoved by it?
  void (*apply)(std::vector<double>& w, std::vector<double>& x);
};
constexpr int kSamples = 5, kIn = 3, kOut = 6;
const Change kChanges[] = {
    {"the weight matrix rescaled", true, true, true,
     [](auto& w, auto&) {
       for (double& v : w) v *= 3;
     }},
    {"the weight matrix recentred", false, true, false,
     [](auto& w, auto&) {  // the same row added to every row
       for (std::size_t i = 0; i < w.size(); ++i) w[i] += 0.5 + static_cast<double>(i % kIn);
     }},
    {"one weight vector rescaled", true, false, false,
     [](auto& w, auto&) {
       for (int i = 0; i < kIn; ++i) w[static_cast<std::size_t>(i)] *= 3;
     }},
    {"the data rescaled", true, true, true,
     [](auto&, auto& x) {
       for (double& v : x) v *= 3;
     }},
    {"the data recentred", true, false, false,
     [](auto&, auto& x) {
       for (std::size_t i = 0; i < x.size(); ++i) x[i] += 0.5 + static_cast<double>(i % kIn);
     }},
    {"one sample rescaled", false, true, true,
     [](auto&, auto& x) {
       for (int i = 0; i < kIn; ++i) x[static_cast<std::size_t>(i)] *= 3;
     }},
};

// True if nothing moved, false if something moved visibly; anything between is a failure.
template <class Config>
bool unmoved(const Change& change, Config config) {
  config.eps = 1e-14;
  const LayerPtr norm = config.build(kScope, {.shape = Shape{kOut}});
  std::vector<double> w = random_tensor(Shape{kOut * kIn}, 1).to_vector();
  std::vector<double> x = random_tensor(Shape{kSamples * kIn}, 2).to_vector();
  const auto run = [&] {
    return (*norm)(linear(Tensor::from(Shape{kSamples, kIn}, x, DType::f64),
                          Tensor::from(Shape{kOut, kIn}, w, DType::f64)));
  };
  const Tensor before = run();
  change.apply(w, x);
  const double moved = largest_change(run(), before, kSamples * kOut);
  CHECK((moved < 1e-9 || moved > 1e-2));
  return moved < 1e-9;
}

TEST_CASE("the invariance table of BatchNorm, LayerNorm and RMSNorm", "[norms]") {
  for (const Change& change : kChanges) {
    INFO(change.name);
    CHECK(unmoved(change, BatchNormConfig{}) == change.batch_norm);
    CHECK(unmoved(change, LayerNormConfig{}) == change.layer_norm);
    CHECK(unmoved(change, RmsNormConfig{}) == change.rms_norm);
    RmsNormConfig partial;
    partial.p = 0.5;
    CHECK(unmoved(change, partial) == change.rms_norm);
  }
}

// The gradient of a bias b (channels) in N(x + b), x (N, channels, space), under a random loss.
template <class Config>
std::vector<double> bias_gradient() {
  const LayerPtr norm = build<Config>({.shape = Shape{4, 5}});
  Tensor b = random_tensor(Shape{4, 1}, 3);
  b.set_requires_grad();
  const Tensor y = (*norm)(random_tensor(Shape{3, 4, 5}, 4) + b);
  backward(sum(y * random_tensor(y.shape(), 5)));
  return b.grad().to_vector();
}

TEST_CASE("a bias before a norm: what of it is void", "[norms]") {
  const auto largest = [](const std::vector<double>& v) {
    double most = 0;
    for (double g : v) most = std::max(most, std::abs(g));
    return most;
  };
  CHECK(largest(bias_gradient<BatchNormConfig>()) < 1e-12);
  CHECK(largest(bias_gradient<InstanceNormConfig>()) < 1e-12);
  // Of a group of two channels only the mean is void.
  const auto group = bias_gradient<GroupNormConfig>();
  CHECK(largest(group) > 1e-3);
  CHECK(std::abs(group[0] + group[1]) < 1e-12);
  CHECK(std::abs(group[2] + group[3]) < 1e-12);
  // LayerNorm is over the last axis: here a bias an element.
  const auto element_bias = [](const auto& config) {
    const LayerPtr norm = config.build(kScope, {.shape = Shape{6}});
    Tensor b = random_tensor(Shape{6}, 3);
    b.set_requires_grad();
    const Tensor y = (*norm)(random_tensor(Shape{3, 6}, 4) + b);
    backward(sum(y * random_tensor(y.shape(), 5)));
    return b.grad().to_vector();
  };
  const auto total = [](const std::vector<double>& v) {
    double s = 0;
    for (double g : v) s += g;
    return std::abs(s);
  };
  const auto layer = element_bias(LayerNormConfig{}), rms = element_bias(RmsNormConfig{});
  CHECK(largest(layer) > 1e-3);
  CHECK(total(layer) < 1e-12);
  CHECK(total(rms) > 1e-3);
}

}  // namespace
}  // namespace norma::test
