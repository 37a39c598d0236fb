// The transformer: identities between placements, what a token sees, and errors.
#include "models/transformer.h"

#include <cmath>

#include "core/ops/cross_entropy.h"
#include "tests/support/op_case.h"

namespace norma::test {
namespace {

const Signature kIds{.shape = Shape{6}, .vocab = 11};

TransformerConfig small() {
  TransformerConfig c;
  c.layers = 3;
  c.width = 16;
  c.heads = 4;
  c.hidden = 24;
  c.activation = SwigluConfig{};
  return c;
}

Tensor ids(std::uint64_t seed = 1) {
  std::vector<std::int64_t> values;
  for (double v : random_tensor(Shape{12}, seed, DType::f64, 0, 11).to_vector()) {
    values.push_back(static_cast<std::int64_t>(v));
  }
  return Tensor::from_ids(Shape{2, 6}, values);
}

Tensor logits(const TransformerConfig& config, const Tensor& x) {
  return (*config.build(0, kIds, DType::f64))(x);
}

TEST_CASE("every position code runs in f64", "[transformer]") {
  for (const PositionConfig& position :
       {PositionConfig(LearnedPositionConfig{}), PositionConfig(SinusoidalPositionConfig{}),
        PositionConfig(RopePositionConfig{}), PositionConfig(AlibiPositionConfig{}),
        PositionConfig(RelativePositionConfig{}), PositionConfig(NoPositionConfig{})}) {
    TransformerConfig config = small();
    config.position = position;
    INFO(position.type());
    CHECK(logits(config, ids()).dtype() == DType::f64);
  }
}

// Note: typed over the family, so that a new placement is tested by being in the list.
TEMPLATE_LIST_TEST_CASE("every placement trains: all parameters get a gradient", "[placements]",
                        PlacementConfig::Members) {
  TransformerConfig c = small();
  c.placement = TestType{};
  const ModelPtr model = c.build(0, kIds);
  const Tensor loss = cross_entropy((*model)(ids()), ids(2));
  CHECK(std::isfinite(loss.item()));
  backward(loss);
  for (const NamedParameter& p : model->named_parameters()) {
    INFO(p.name);
    CHECK(p.tensor.grad().defined());
  }
}

TEMPLATE_LIST_TEST_CASE("the placement changes no other initial weight", "[placements]",
                        PlacementConfig::Members) {
  if (std::string_view(TestType::type) == "deepnorm") return;  // has a gain of its own
  TransformerConfig c = small(), pre = small();
  c.placement = TestType{};
  const auto a = c.build(0, kIds)->named_parameters();
  const auto b = pre.build(0, kIds)->named_parameters();
  int shared = 0;
  for (const NamedParameter& p : a) {
    const NamedTensor* other = find_tensor(b, p.name);
    if (!other) continue;
    ++shared;
    CHECK(same_bits(p.tensor, other->tensor));
  }
  CHECK(shared > 20);
}

TEST_CASE("a decoder does not see later tokens, an encoder does", "[transformer]") {
  for (const bool causal : {true, false}) {
    TransformerConfig c = small();
    c.kind = causal ? TransformerKind::decoder : TransformerKind::encoder;
    Tensor x = ids(), changed = ids();
    changed.mutable_data<std::int64_t>()[5] = (changed.to_ids()[5] + 1) % 11;  // the last token
    const auto a = logits(c, x).to_vector(), b = logits(c, changed).to_vector();
    bool earlier_same = true;
    for (std::size_t i = 0; i < 5 * 11; ++i) earlier_same &= a[i] == b[i];
    CHECK(earlier_same == causal);
  }
}

TEST_CASE("dropout is off in evaluation, bit for bit (karpathy/nanoGPT#240)", "[transformer]") {
  TransformerConfig c = small(), dry = small();
  c.dropout = c.attention_dropout = 0.5;
  const ModelPtr wet = c.build(0, kIds), plain = dry.build(0, kIds);
  wet->eval();
  const Tensor first = (*wet)(ids());
  wet->train();
  Forward pass;
  pass.stream = "step 1";
  CHECK_FALSE(same_bits(wet->forward(ids(), pass), first));
  wet->eval();
  CHECK(same_bits((*wet)(ids()), first));
  CHECK(same_bits((*plain)(ids()), first));
}

TEST_CASE("gpt2 divides the residual projections by sqrt(2L), and biases start at 0",
          "[transformer]") {
  TransformerConfig c = small();
  c.width = 64;
  c.hidden = 256;
  c.tied = true;
  c.activation = GeluConfig{};
  const auto parameters = c.build(0, kIds)->named_parameters();
  const auto rms = [&](const char* name) {
    double sum = 0;
    const Tensor t = find_tensor(parameters, name)->tensor;
    for (double v : t.to_vector()) sum += v * v;
    return std::sqrt(sum / static_cast<double>(t.numel()));
  };
  CHECK(rms("blocks.0.ffn.up.weight") == Approx(0.02).epsilon(0.03));
  CHECK(rms("blocks.0.ffn.down.weight") == Approx(0.02 / std::sqrt(6.0)).epsilon(0.03));
  CHECK(rms("blocks.2.attention.out.weight") == Approx(0.02 / std::sqrt(6.0)).epsilon(0.05));
  CHECK(rms("blocks.0.ffn.up.bias") == 0);
  CHECK(find_tensor(parameters, "head.weight") == nullptr);
}

TEST_CASE("wrong sizes are told with both numbers (sgl-project/sglang#32028)", "[transformer]") {
  const auto problems = [](auto change) {
    TransformerConfig c = small();
    change(c);
    config::Problems p;
    c.check(p, "model");
    std::string text;
    for (const auto& problem : p.list()) text += problem.path + ": " + problem.text + "\n";
    return text;
  };
  CHECK(problems([](auto&) {}) == "");
  CHECK(contains(problems([](auto& c) { c.heads = 3; }),
                 "model.heads: 3 heads do not divide the width of 16"));
  CHECK(contains(problems([](auto& c) { c.kv_heads = 3; }),
                 "3 key-value heads do not divide 4 heads"));
  CHECK(contains(problems([](auto& c) {
                   c.head_width = 5;
                   c.position = RopePositionConfig{};
                 }),
                 "the head width of 5 is odd"));
  CHECK(contains(problems([](auto& c) { c.layers.reset(); }),
                 "model.layers: missing; expected the number of blocks"));
  CHECK(contains(problems([](auto& c) { c.encoder_layers = 2; }),
                 "model.encoder_layers: only an encoder_decoder has it; give layers"));
  CHECK(contains(problems([](auto& c) {
                   c.kind = TransformerKind::encoder_decoder;
                   c.layers.reset();
                   c.encoder_layers = 2;
                 }),
                 "model.decoder_layers: missing"));
  CHECK(contains(problems([](auto& c) { c.window = std::vector<std::optional<std::int64_t>>(2); }),
                 "model.window: expected a list with one a block, 3 in all; got 2"));
  NORMA_CHECK_ERROR(logits(small(), Tensor::from_ids(Shape{1, 7}, std::vector<std::int64_t>(7))),
                    "a sequence of 7 tokens is longer than the context of 6");
}

TEST_CASE("ALiBi's slopes as in the paper's code (arXiv 2108.12409)", "[transformer]") {
  CHECK(alibi_slopes(3) == std::vector<double>{std::exp2(-4), std::exp2(-8), std::exp2(-2)});
  CHECK(alibi_slopes(8)[0] == 0.5);
  TransformerConfig c = small();
  c.position = AlibiPositionConfig{};
  CHECK(logits(c, ids()).shape() == Shape{2, 6, 11});
}

}  // namespace
}  // namespace norma::test
