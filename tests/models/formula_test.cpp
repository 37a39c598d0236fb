// The formulas that `norma explain` prints, evaluated by plain ops, give what runs.
#include "models/formula.h"

#include <cctype>
#include <cmath>
#include <functional>
#include <map>

#include "core/ops/arithmetic.h"
#include "core/ops/indexing.h"
#include "core/ops/math.h"
#include "core/ops/matmul.h"
#include "core/ops/movement.h"
#include "core/ops/reduce.h"
#include "models/transformer.h"
#include "tests/support/op_case.h"

namespace norma::test {
namespace {

constexpr std::int64_t kWidth = 8, kHeads = 2, kLength = 5, kSourceLength = 7, kVocab = 11;

// Reads "x = N_post(2 x + ffn(x)); ..." and computes it. Statement: NAME = SUM; sum: product
// {+ product}; product: factors side by side; factor: a number, NAME, or NAME(SUM).
class Evaluator {
 public:
  std::map<std::string, Tensor> values;
  std::map<std::string, std::function<Tensor(const Tensor&)>> functions;

  void run(const std::string& text) {
    text_ = text;
    at_ = 0;
    while (at_ < text_.size()) {
      const std::string name = word();
      expect('=');
      values[name] = sum();
      if (at_ < text_.size()) expect(';');
    }
  }

 private:
  char next() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  void expect(char c) {
    require(next() == c, "formula: expected '{}' at {} of \"{}\"", c, at_, text_);
    ++at_;
    (void)next();
  }
  std::string word() {
    (void)next();
    std::string w;
    while (at_ < text_.size() && (std::isalnum(text_[at_]) || text_[at_] == '_')) w += text_[at_++];
    return w;
  }
  Tensor sum() {
    Tensor total = product();
    while (next() == '+') {
      ++at_;
      total = total + product();
    }
    return total;
  }
  Tensor product() {
    Tensor p;
    while (std::isalnum(next())) p = p.defined() ? p * factor() : factor();
    require(p.defined(), "formula: expected a factor at {} of \"{}\"", at_, text_);
    return p;
  }
  Tensor factor() {
    if (std::isdigit(next())) {
      std::size_t used = 0;
      const double number = std::stod(text_.substr(at_), &used);
      at_ += used;
      return Tensor::scalar(number, DType::f64);
    }
    const std::string name = word();
    if (next() != '(') return values.at(name);
    ++at_;
    const Tensor argument = sum();
    expect(')');
    return functions.at(name)(argument);
  }

  std::string text_;
  std::size_t at_ = 0;
};

TransformerConfig small(const PlacementConfig& placement, TransformerKind kind) {
  TransformerConfig c;
  c.kind = kind;
  c.layers = 4;  // of which `mix` makes one post
  c.width = kWidth;
  c.heads = kHeads;
  c.hidden = 12;
  c.norm = LayerNormConfig{};
  c.placement = placement;
  c.position = NoPositionConfig{};
  return c;
}

Signature data(TransformerKind kind) {
  Signature in{.shape = Shape{kLength}, .vocab = kVocab};
  if (kind == TransformerKind::encoder_decoder) in.source = Shape{kSourceLength};
  return in;
}

Tensor ids(std::int64_t length, std::uint64_t seed) {
  std::vector<std::int64_t> values;
  for (double v : random_tensor(Shape{2 * length}, seed, DType::f64, 0, kVocab).to_vector()) {
    values.push_back(static_cast<std::int64_t>(v));
  }
  return Tensor::from_ids(Shape{2, length}, values);
}

// A model in words: the printed formulas, with norms, attention and feed-forward from plain ops.
class ByFormula {
 public:
  ByFormula(const TransformerConfig& config, std::vector<NamedTensor> state)
      : config_(config), state_(std::move(state)) {}

  Tensor logits(const Tensor& ids, const Tensor& source) {
    if (source.defined()) memory_ = stack(Side::encoder, "encoder.", source);
    const Side side = source.defined() ? Side::decoder : Side::only;
    const Tensor x = stack(side, source.defined() ? "decoder." : "", ids);
    return matmul(x, transpose(value("head.weight")));
  }

 private:
  bool has(const std::string& name) const { return find_tensor(state_, name) != nullptr; }
  const Tensor& value(const std::string& name) const { return find_tensor(state_, name)->tensor; }

  Tensor product(const Tensor& x, const std::string& name) const {
    return matmul(x, transpose(value(name + ".weight"))) + value(name + ".bias");
  }
  Tensor layer_norm(const Tensor& x, const std::string& name) const {
    const Tensor c = x - mean(x, {-1}, Keep::yes);
    const Tensor v = mean(c * c, {-1}, Keep::yes);
    return c / sqrt(v + 1e-5) * value(name + ".weight") + value(name + ".bias");
  }
  Tensor feed_forward(const Tensor& x, const std::string& name) const {
    const Tensor h = product(x, name + ".up");
    return product(h * (erf(h * std::sqrt(0.5)) + 1.0) * 0.5, name + ".down");
  }
  // (B, T, C) as (B, heads, T, C / heads), with RMSNorm on each head where there is one.
  Tensor heads(const Tensor& x, const std::string& norm) const {
    Tensor h = reshape(x, Shape{x.size(0), x.size(1), kHeads, kWidth / kHeads});
    if (has(norm + ".weight")) {
      h = h / sqrt(mean(h * h, {-1}, Keep::yes) + 1e-6) * value(norm + ".weight");
    }
    return permute(h, {0, 2, 1, 3});
  }
  Tensor attention(const Tensor& x, const Tensor& from, bool causal, const std::string& n) const {
    const Tensor q = heads(product(x, n + ".q"), n + ".q_norm");
    const Tensor k = heads(product(from, n + ".k"), n + ".k_norm");
    const Tensor v = heads(product(from, n + ".v"), n + ".v_norm");
    Tensor weights = exp(matmul(q, transpose(k)) / std::sqrt(double{kWidth / kHeads}));
    if (causal) {
      const std::int64_t length = x.size(1);
      std::vector<double> seen(static_cast<std::size_t>(length * length));
      for (std::int64_t i = 0; i < length; ++i) {
        for (std::int64_t j = 0; j <= i; ++j) seen[static_cast<std::size_t>(i * length + j)] = 1;
      }
      weights = weights * Tensor::from(Shape{length, length}, seen, DType::f64);
    }
    const Tensor y = matmul(weights / sum(weights, {-1}, Keep::yes), v);
    return product(reshape(permute(y, {0, 2, 1, 3}), x.shape()), n + ".out");
  }

  // What the names in the formula of a branch stand for.
  void define(Evaluator& e, Side side, const std::string& prefix, const std::string& branch) {
    const std::string name = prefix + branch;
    const auto norm = [&](const char* place, const std::string& layer) {
      e.functions.erase(place);
      if (!has(layer + ".weight")) return;
      e.functions[place] = [=, this](const Tensor& x) { return layer_norm(x, layer); };
    };
    norm("N_in", name + "_norm");
    norm("N_out", name + "_out_norm");
    norm("N_post", name + "_post_norm");
    for (const char* factor : {"beta", "omega"}) {
      if (has(name + "_" + factor)) e.values[factor] = value(name + "_" + factor);
    }
    e.functions[branch] = [=, this](const Tensor& x) {
      if (branch == "ffn") return feed_forward(x, name);
      const bool cross = branch == "cross_attention";
      return attention(x, cross ? memory_ : x, !cross && config_.causal(side), name);
    };
  }

  Tensor stack(Side side, const std::string& prefix, const Tensor& ids) {
    Evaluator e;
    e.values["x"] = embedding(value("tokens.weight"), ids);
    for (const Formula& f : start_formulas(config_, side)) e.run(f.text);
    for (std::int64_t i = 0; i < config_.blocks(side); ++i) {
      for (const Formula& f : block_formulas(config_, side, i, 17)) {
        if (!f.branch.empty()) define(e, side, fmt::format("{}blocks.{}.", prefix, i), f.branch);
        e.run(f.text);
      }
    }
    e.functions["N"] = [&](const Tensor& x) { return layer_norm(x, prefix + "norm"); };
    for (const Formula& f : end_formulas(config_, side)) e.run(f.text);
    return e.values["x"];
  }

  TransformerConfig config_;
  std::vector<NamedTensor> state_;
  Tensor memory_;
};

// Runs a model with random parameters, and the formulas of `told`.
std::string difference(const TransformerConfig& config, const TransformerConfig& told) {
  const bool two = config.kind == TransformerKind::encoder_decoder;
  const ModelPtr model = config.build(0, data(config.kind), DType::f64);
  const NoGrad off;
  std::uint64_t seed = 10;
  for (const NamedParameter& p : model->named_parameters()) {
    Tensor(p.tensor).copy_(random_tensor(p.tensor.shape(), ++seed, DType::f64, -0.5, 0.5));
  }
  Forward pass;
  if (two) pass.source = ids(kSourceLength, 2);
  const Tensor ran = model->forward(ids(kLength, 1), pass);
  return compare(ByFormula(told, model->state_dict()).logits(ids(kLength, 1), pass.source), ran,
                 1e-10);
}

TEMPLATE_LIST_TEST_CASE("the formula of every placement is what runs", "[formula]",
                        PlacementConfig::Members) {
  const PlacementConfig placement = TestType{};
  for (const TransformerKind kind :
       {TransformerKind::decoder, TransformerKind::encoder, TransformerKind::encoder_decoder}) {
    const TransformerConfig config = small(placement, kind);
    const std::string_view refused = placement.refuses_cross_attention();
    INFO(placement.type() << ", kind " << static_cast<int>(kind));
    if (kind == TransformerKind::encoder_decoder && !refused.empty()) {
      config::Problems problems;
      config.check(problems, "model");
      REQUIRE(problems.size() == 1);
      CHECK(contains(problems.list()[0].text, std::string(refused)));
      continue;
    }
    CHECK(difference(config, config) == "");
  }
}

TEST_CASE("a formula with a wrong number, or of another placement, is told apart", "[formula]") {
  TransformerConfig keel = small(KeelPlacement{}, TransformerKind::decoder), wrong = keel;
  KeelPlacement other;
  other.alpha = 8.001;  // in the place of 8
  wrong.placement = other;
  CHECK(difference(keel, wrong) != "");
  CHECK(difference(small(PostPlacement{}, TransformerKind::decoder),
                   small(B2tPlacement{}, TransformerKind::decoder)) != "");
}

TEST_CASE("formulas as they are printed", "[formula]") {
  const auto printed = [](const PlacementConfig& placement, std::int64_t block) {
    std::string text;
    const TransformerConfig config = small(placement, TransformerKind::decoder);
    for (const Formula& f : block_formulas(config, Side::only, block)) text += f.text + "\n";
    return text;
  };
  CHECK(printed(PrePlacement{}, 0) == "x = x + attention(N_in(x))\nx = x + ffn(N_in(x))\n");
  CHECK(printed(DeepNormPlacement{}, 0) ==
        "x = N_post(1.682 x + attention(x))\nx = N_post(1.682 x + ffn(x))\n");
  CHECK(printed(LnsPlacement{}, 3) == "x = x + attention(0.5 N_in(x))\nx = x + ffn(0.5 N_in(x))\n");
  CHECK(printed(ParallelPlacement{}, 0) ==
        "b = x\nx = x + attention(N_in(b))\nx = x + ffn(N_in(b))\n");
  CHECK(printed(B2tPlacement{}, 0) ==
        "b = x\nx = N_post(x + attention(x))\nx = N_post(b + x + ffn(x))\n");
  CHECK(printed(ResiDualPlacement{}, 0) ==
        "f = attention(x); r = r + f; x = N_post(x + f)\n"
        "f = ffn(x); r = r + f; x = N_post(x + f)\n");
  CHECK(printed(HybridPlacement{}, 0) == "x = x + attention(x)\nx = N_post(x); x = x + ffn(x)\n");
  CHECK(printed(AdminPlacement{}, 0) ==
        "x = N_post(omega x + attention(x))\nx = N_post(omega x + ffn(x))\n");
  KeelPlacement keel;
  keel.alpha = 2.5;
  CHECK(printed(keel, 0) == printed(PrePlacement{}, 0));  // its first block is `pre`
  CHECK(printed(keel, 1) ==
        "x = N_post(2.5 x + attention(N_in(x)))\nx = N_post(2.5 x + ffn(N_in(x)))\n");
  CHECK(printed(MixPlacement{}, 0) == printed(PostPlacement{}, 0));
  CHECK(printed(MixPlacement{}, 1) == printed(PrePlacement{}, 1));
}

}  // namespace
}  // namespace norma::test
