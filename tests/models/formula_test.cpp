// The formulas that `norma explain` prints, evaluated by layers one by one, give what runs.
#include "models/formula.h"

#include <cctype>
#include <functional>
#include <map>

#include "core/ops/arithmetic.h"
#include "core/ops/indexing.h"
#include "core/ops/linear.h"
#include "models/transformer.h"
#include "tests/support/op_case.h"

namespace norma::test {
namespace {

constexpr std::int64_t kWidth = 8, kLength = 5, kSourceLength = 7, kVocab = 11;

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
  c.heads = 2;
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

// A model in words: layers of its own, with the values of `state`, and the printed formulas.
class ByFormula {
 public:
  ByFormula(const TransformerConfig& config, std::vector<NamedTensor> state)
      : config_(config), state_(std::move(state)) {}

  Tensor logits(const Tensor& ids, const Tensor& source) {
    if (source.defined()) memory_ = stack(Side::encoder, "encoder.", source);
    const Side side = source.defined() ? Side::decoder : Side::only;
    return linear(stack(side, source.defined() ? "decoder." : "", ids), value("head.weight"));
  }

 private:
  const Tensor& value(const std::string& name) const { return find_tensor(state_, name)->tensor; }

  // The layer with the values that `state` has under `prefix`, as a function.
  template <class L>
  std::function<Tensor(const Tensor&)> function(std::shared_ptr<L> layer,
                                                const std::string& prefix) const {
    std::vector<NamedTensor> part;
    for (const NamedTensor& t : state_) {
      if (t.name.starts_with(prefix + ".")) {
        part.push_back({t.name.substr(prefix.size() + 1), t.tensor});
      }
    }
    layer->load_state_dict(part);
    return [this, layer](const Tensor& x) {
      Forward pass;
      pass.memory = memory_;
      return layer->forward(x, pass);
    };
  }

  Tensor stack(Side side, const std::string& prefix, const Tensor& ids) {
    const Scope scope(1, TorchInit{}, DType::f64);
    Signature in{.shape = Shape{ids.size(1), kWidth}};
    in.features_last = true;
    const auto norm = [&](const std::string& name) {
      return function(std::shared_ptr<Layer>(NormConfig(LayerNormConfig{}).build(scope, in)), name);
    };
    Evaluator e;
    e.values["x"] = embedding(value("tokens.weight"), ids);
    const auto run = [&](const std::vector<Formula>& formulas, const std::string& block) {
      for (const Formula& f : formulas) {
        const std::string name = prefix + block + f.branch;
        if (!f.branch.empty()) {
          for (const auto& [place, key] :
               {std::pair{"N_in", "_norm"}, std::pair{"N_out", "_out_norm"},
                std::pair{"N_post", "_post_norm"}}) {
            if (find_tensor(state_, name + key + ".weight")) e.functions[place] = norm(name + key);
          }
          for (const char* factor : {"beta", "omega"}) {
            if (const auto* t = find_tensor(state_, name + "_" + factor))
              e.values[factor] = t->tensor;
          }
          e.functions[f.branch] = branch_function(side, f.branch, name, in);
        }
        e.run(f.text);
      }
    };
    run(start_formulas(config_, side), "");
    for (std::int64_t i = 0; i < config_.blocks(side); ++i) {
      run(block_formulas(config_, side, i, 17), fmt::format("blocks.{}.", i));
    }
    if (find_tensor(state_, prefix + "norm.weight")) e.functions["N"] = norm(prefix + "norm");
    run(end_formulas(config_, side), "");
    return e.values["x"];
  }

  std::function<Tensor(const Tensor&)> branch_function(Side side, const std::string& branch,
                                                       const std::string& name,
                                                       const Signature& in) const {
    const Scope scope(1, TorchInit{}, DType::f64);
    if (branch == "ffn") {
      return function(std::make_shared<FeedForward>(FeedForward::Options{.hidden = 12}, scope, in),
                      name);
    }
    AttentionConfig attention;
    attention.heads = 2;
    AttentionParts parts;
    if (branch == "cross_attention") {
      parts.memory = Shape{kSourceLength, kWidth};
    } else {
      attention.causal = config_.causal(side);
    }
    if (config_.placement_of(side, 0).template get_if<HybridPlacement>()) {
      attention.qk_norm = QkNormConfig{};
      parts.value_norm = true;
    }
    return function(std::make_shared<Attention>(attention, scope, in, parts), name);
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
    Tensor(p.tensor).copy_(random_tensor(p.tensor.shape(), ++seed));
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
  CHECK(printed(MixPlacement{}, 0) == printed(PostPlacement{}, 0));
  CHECK(printed(MixPlacement{}, 1) == printed(PrePlacement{}, 1));
}

}  // namespace
}  // namespace norma::test
