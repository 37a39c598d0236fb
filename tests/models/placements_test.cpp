// Placements: the identities between them, their constants, and what the first batch tells.
#include <cmath>
#include <map>

#include "core/ops/arithmetic.h"
#include "core/ops/reduce.h"
#include "models/transformer.h"
#include "tests/support/op_case.h"

namespace norma::test {
namespace {

constexpr std::int64_t kVocab = 11;

TransformerConfig small(const PlacementConfig& placement) {
  TransformerConfig c;
  c.layers = 4;
  c.width = 16;
  c.heads = 4;
  c.hidden = 24;
  c.norm = RmsNormConfig{};
  c.placement = placement;
  c.final_norm = true;
  c.init = XavierNormalInit{};
  return c;
}

Tensor ids(std::int64_t length = 6, std::uint64_t seed = 1) {
  std::vector<std::int64_t> values;
  for (double v : random_tensor(Shape{2 * length}, seed, DType::f64, 0, kVocab).to_vector()) {
    values.push_back(static_cast<std::int64_t>(v));
  }
  return Tensor::from_ids(Shape{2, length}, values);
}

ModelPtr build(const TransformerConfig& config, std::int64_t source = 0) {
  Signature in{.shape = Shape{6}, .vocab = kVocab};
  if (source > 0) in.source = Shape{source};
  return config.build(0, in, DType::f64);
}

Tensor logits(const TransformerConfig& config) { return (*build(config))(ids()); }

// Remembers what it is told.
class Recorder final : public Observer {
 public:
  void stream(std::string_view path, const Tensor& x) override {
    order.push_back(std::string(path));
    streams[std::string(path)] = x;
  }
  void branch(std::string_view path, const Tensor& update) override {
    branches.emplace_back(path, update);
  }
  void largest_logit(std::string_view, const Tensor&) override {}

  std::vector<std::string> order;
  std::map<std::string, Tensor> streams;
  std::vector<std::pair<std::string, Tensor>> branches;
};

TEST_CASE("deepnorm with alpha = gain = 1, and admin before its profile, are post",
          "[placements]") {
  DeepNormPlacement deep;
  deep.alpha = deep.gain = 1;
  const Tensor post = logits(small(PostPlacement{}));
  CHECK(same_bits(logits(small(deep)), post));
  CHECK(same_bits(logits(small(AdminPlacement{})), post));
  CHECK_FALSE(same_bits(logits(small(DeepNormPlacement{})), post));
}

TEST_CASE("a lone block of lns, keel and mix is pre; peri is sandwich", "[placements]") {
  const auto one = [](const PlacementConfig& placement) {
    TransformerConfig c = small(placement);
    c.layers = 1;
    return logits(c);
  };
  const Tensor pre = one(PrePlacement{});
  CHECK(same_bits(one(LnsPlacement{}), pre));
  CHECK(same_bits(one(KeelPlacement{}), pre));
  CHECK(same_bits(one(MixPlacement{}), pre));
  CHECK_FALSE(same_bits(logits(small(LnsPlacement{})), logits(small(PrePlacement{}))));
  CHECK_FALSE(same_bits(logits(small(KeelPlacement{})), logits(small(PrePlacement{}))));
  CHECK(same_bits(logits(small(PeriPlacement{})), logits(small(SandwichPlacement{}))));
}

TEST_CASE("sandwich with identities as its outer norms is pre", "[placements]") {
  TransformerConfig sandwich = small(SandwichPlacement{}), pre = small(PrePlacement{});
  sandwich.norm = pre.norm = DytConfig{};
  const ModelPtr model = build(sandwich);
  const NoGrad off;
  for (const NamedParameter& p : model->named_parameters()) {
    if (p.name.find("_out_norm") == std::string::npos) continue;
    // 1e6 tanh(1e-6 x) is x, but for x^3 1e-12 / 3.
    if (p.name.ends_with(".alpha")) Tensor(p.tensor).fill_(1e-6);
    if (p.name.ends_with(".weight")) Tensor(p.tensor).fill_(1e6);
  }
  CHECK(compare((*model)(ids()), logits(pre), 1e-9) == "");
}

// Unwatched, x + F(x) is made in the tiles of F's last product where nothing comes between; an
// observer is told F(x) by itself.
TEMPLATE_LIST_TEST_CASE("an observer changes no bit of a model", "[placements]",
                        PlacementConfig::Members) {
  TransformerConfig c = small(TestType{});
  for (const double dropout : {0.0, 0.1}) {
    c.dropout = dropout;
    INFO(TestType::type << ", dropout " << dropout);
    const ModelPtr model = build(c);
    const auto run = [&](Observer* observer, bool drops) {
      Forward pass;
      pass.observer = observer;
      pass.stream = "step 1";
      pass.dropout = drops;
      const Tensor y = model->forward(ids(), pass);
      std::vector<Tensor> all{y.detach()}, weights;
      for (const NamedParameter& n : model->named_parameters()) weights.push_back(n.tensor);
      for (const Tensor& g : grad(std::vector<Tensor>{sum(y * y)}, weights)) all.push_back(g);
      return all;
    };
    Recorder recorder;
    const std::vector<Tensor> alone = run(nullptr, true), watched = run(&recorder, true);
    CHECK(recorder.branches.size() == 8);
    REQUIRE(alone.size() == watched.size());
    for (std::size_t i = 0; i < alone.size(); ++i) CHECK(same_bits(alone[i], watched[i]));
    CHECK(same_bits(run(nullptr, false)[0], alone[0]) == (dropout == 0));
  }
}

TEST_CASE("rezero starts as the embeddings", "[placements]") {
  TransformerConfig c = small(ReZeroPlacement{}), empty = c;
  empty.layers = 0;
  CHECK(compare(logits(c), logits(empty), 1e-14) == "");
}

TEST_CASE("without norms every plain placement is none", "[placements]") {
  const auto without = [](const PlacementConfig& placement) {
    TransformerConfig c = small(placement);
    c.norm = NoNormConfig{};
    return logits(c);
  };
  const Tensor none = without(NoPlacement{});
  for (const PlacementConfig& p :
       {PlacementConfig(PrePlacement{}), PlacementConfig(PostPlacement{}),
        PlacementConfig(SandwichPlacement{}), PlacementConfig(OutputPlacement{}),
        PlacementConfig(MixPlacement{}), PlacementConfig(AdminPlacement{})}) {
    INFO(p.type());
    CHECK(same_bits(without(p), none));
  }
}

TEST_CASE("a list with one placement, or norm, a block", "[placements]") {
  TransformerConfig list = small(PrePlacement{});
  list.placement = std::vector<PlacementConfig>(4, PlacementConfig(PrePlacement{}));
  list.norm = std::vector<NormConfig>(4, NormConfig(RmsNormConfig{}));
  CHECK(same_bits(logits(list), logits(small(PrePlacement{}))));
  std::get<1>(list.placement)[0] = PostPlacement{};
  CHECK(same_bits(logits(list), logits(small(MixPlacement{}))));  // a quarter of 4 blocks
  std::get<1>(list.norm)[3] = LayerNormConfig{};
  const auto parameters = build(list)->named_parameters();
  CHECK(find_tensor(parameters, "blocks.3.ffn_norm.bias") != nullptr);
  CHECK(find_tensor(parameters, "blocks.2.ffn_norm.bias") == nullptr);
  CHECK(find_tensor(parameters, "norm.bias") != nullptr);  // as the last block's
  const auto problem = [](const TransformerConfig& c) {
    config::Problems problems;
    c.check(problems, "model");
    return problems.empty() ? "" : problems.list()[0].path + ": " + problems.list()[0].text;
  };
  CHECK(problem(list) == "");
  std::get<1>(list.placement)[1] = ResiDualPlacement{};
  CHECK(contains(problem(list), "model.placement: resi_dual has a second stream"));
  std::get<1>(list.placement).pop_back();
  CHECK(contains(problem(list), "expected a list with one a block, 4 in all; got 3"));
}

TEST_CASE("DeepNorm's constants (arXiv 2203.00555)", "[placements]") {
  const auto row = [](const TransformerConfig& c, Side side) {
    return c.row(side, 0, BranchKind::attention);
  };
  TransformerConfig c = small(DeepNormPlacement{});
  for (const auto& [layers, alpha, gain] :
       {std::tuple{6, 1.861, 0.3799}, std::tuple{24, 2.632, 0.2686},
        std::tuple{1000, 6.687, 0.1057}}) {
    c.layers = layers;
    CHECK(row(c, Side::only).alpha == Approx(alpha).epsilon(1e-3));
    CHECK(row(c, Side::only).gain == Approx(gain).epsilon(1e-3));
  }
  c.kind = TransformerKind::encoder_decoder;
  c.layers = 6;
  CHECK(row(c, Side::encoder).alpha == Approx(1.418).epsilon(1e-3));
  CHECK(row(c, Side::encoder).gain == Approx(0.497).epsilon(1e-3));
  CHECK(row(c, Side::decoder).alpha == Approx(2.060).epsilon(1e-3));
  CHECK(row(c, Side::decoder).gain == Approx(0.3433).epsilon(1e-3));
}

TEST_CASE("DeepNorm's gain is on v, out and the feed-forward, not on q and k", "[placements]") {
  TransformerConfig deep = small(DeepNormPlacement{}), post = small(PostPlacement{});
  deep.kind = post.kind = TransformerKind::encoder_decoder;
  const auto a = build(deep, 5)->named_parameters(), b = build(post, 5)->named_parameters();
  int scaled = 0, same = 0;
  for (const NamedParameter& p : a) {
    if (!p.name.ends_with(".weight") || p.name.find("blocks") == std::string::npos) continue;
    const double ratio = p.tensor.to_vector()[0] / find_tensor(b, p.name)->tensor.to_vector()[0];
    const bool gains = p.name.find("ffn.") != std::string::npos ||
                       p.name.find(".v.") != std::string::npos ||
                       p.name.find(".out.") != std::string::npos;
    const Side side = p.name.starts_with("encoder") ? Side::encoder : Side::decoder;
    INFO(p.name);
    CHECK(ratio == Approx(gains ? deep.row(side, 0, BranchKind::ffn).gain : 1));
    ++(gains ? scaled : same);
  }
  CHECK(scaled == 4 * 4 + 4 * 6);
  CHECK(same == 4 * (2 + 2) + 4 * (4 + 3));
}

TEST_CASE("admin's omega is sqrt(1 + the variances of the branches before)", "[placements]") {
  for (const TransformerKind kind : {TransformerKind::decoder, TransformerKind::encoder_decoder}) {
    TransformerConfig c = small(AdminPlacement{});
    c.kind = kind;
    c.dropout = 0.1;  // which the profile leaves out
    const bool two = kind == TransformerKind::encoder_decoder;
    const ModelPtr model = build(c, two ? 5 : 0);
    Forward pass;
    if (two) pass.source = ids(5, 2);
    model->profile(ids(), pass);
    CHECK(model->training());
    model->eval();
    Recorder seen;
    pass.observer = &seen;
    (void)model->forward(ids(), pass);
    CHECK(seen.branches.size() == (two ? 4 * 2 + 4 * 3 : 4 * 2));
    double sum = 1;
    const auto state = model->state_dict();
    for (const auto& [path, update] : seen.branches) {
      if (path == "decoder.blocks.0.attention") sum = 1;  // a stack of its own
      INFO(path);
      const NamedTensor* omega = find_tensor(state, path + "_omega");
      REQUIRE(omega != nullptr);
      CHECK(omega->tensor.shape() == Shape{16});
      for (double w : omega->tensor.to_vector()) CHECK(w == Approx(std::sqrt(sum)));
      sum += var(update, {}, {.correction = 0}).item();
    }
    CHECK(sum > 1.1);
  }
}

TEMPLATE_LIST_TEST_CASE("but for admin, a profile changes nothing", "[placements]",
                        PlacementConfig::Members) {
  if (std::string_view(TestType::type) == "admin") return;
  const ModelPtr model = build(small(TestType{})), fresh = build(small(TestType{}));
  model->profile(ids(), {});
  const auto state = model->state_dict(), expected = fresh->state_dict();
  for (std::size_t i = 0; i < state.size(); ++i) {
    CHECK(same_bits(state[i].tensor, expected[i].tensor));
  }
}

TEST_CASE("an observer sees the stream and what each branch adds to it", "[placements]") {
  const ModelPtr model = build(small(PrePlacement{}));
  Recorder seen;
  Forward pass;
  pass.observer = &seen;
  const Tensor watched = model->forward(ids(), pass);
  CHECK(same_bits(watched, (*model)(ids())));
  CHECK(seen.order ==
        std::vector<std::string>{"embedding", "blocks.0", "blocks.1", "blocks.2", "blocks.3"});
  REQUIRE(seen.branches.size() == 8);
  CHECK(seen.branches[7].first == "blocks.3.ffn");
  CHECK(same_bits(seen.streams["blocks.1"],
                  seen.streams["blocks.0"] + seen.branches[2].second + seen.branches[3].second));
}

TEST_CASE("an encoder-decoder reads its source, but for the padding", "[transformer]") {
  TransformerConfig c = small(PrePlacement{});
  c.kind = TransformerKind::encoder_decoder;
  c.encoder_layers = 1;
  c.decoder_layers = 2;
  const ModelPtr model = build(c, 5);
  Forward pass;
  pass.source = ids(5, 2);
  pass.source_mask = Tensor::from(Shape{2, 5}, {1, 1, 1, 0, 0, 1, 1, 1, 1, 1}, DType::u8);
  const Tensor first = model->forward(ids(), pass);
  CHECK(first.shape() == Shape{2, 6, kVocab});
  const auto with_source_changed_at = [&](int i) {
    Forward other = pass;
    other.source = pass.source.clone();
    std::int64_t& id = other.source.mutable_data<std::int64_t>()[i];
    id = (id + 1) % kVocab;
    return model->forward(ids(), other);
  };
  CHECK(same_bits(with_source_changed_at(4), first));        // padding of the first sample
  CHECK_FALSE(same_bits(with_source_changed_at(2), first));  // its last token
  Tensor later = ids();
  later.mutable_data<std::int64_t>()[5] = (later.to_ids()[5] + 1) % kVocab;
  const auto a = first.to_vector(), b = model->forward(later, pass).to_vector();
  for (std::size_t i = 0; i < 5 * kVocab; ++i) CHECK(a[i] == b[i]);
  NORMA_CHECK_ERROR(model->forward(ids(), {}), "an encoder_decoder reads a source");
  NORMA_CHECK_ERROR(build(c), "the data have none");
}

}  // namespace
}  // namespace norma::test
