// Generation: with a cache as without, what a token costs, how tokens are picked.
#include "apps/training/generation.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

#include "core/ops/movement.h"
#include "models/recurrent.h"
#include "models/transformer.h"
#include "tests/support/op_case.h"
#include "tests/support/process.h"

namespace norma::test {
namespace {

constexpr std::int64_t kVocab = 13, kContext = 12;
const Signature kIds{.shape = Shape{kContext}, .vocab = kVocab};

DataSpec spec() {
  return {.input = Shape{kContext}, .target = Shape{kContext}, .vocab = kVocab, .classes = kVocab};
}

TransformerConfig decoder() {
  TransformerConfig c;
  c.layers = 3;
  c.width = 16;
  c.heads = 4;
  c.init = NormalInit{.std = 0.5};  // so that logits differ
  return c;
}

std::vector<std::int64_t> generated(Model& model, const GenerationOptions& options,
                                    std::vector<std::int64_t> prompt = {3, 1, 4}) {
  std::vector<std::int64_t> out;
  generate(model, spec(), std::move(prompt), options, [&](std::int64_t id) { out.push_back(id); });
  return out;
}

// Passes everything on, and counts: positions that go through the products, pairs of a query and a
// key that attention may meet.
class Counting final : public Layer {
 public:
  explicit Counting(Model& model) : Layer(Scope(0, TorchInit{}), model.output()), model_(model) {}
  [[nodiscard]] Tensor forward(const Tensor& ids, const Forward& pass) override {
    const std::int64_t before = pass.cache ? pass.cache->length : 0;
    positions.push_back(ids.size(1));
    pairs.push_back(ids.size(1) * (before + ids.size(1)));
    return model_.forward(ids, pass);
  }
  [[nodiscard]] Continues continues() const override { return model_.continues(); }

  std::vector<std::int64_t> positions, pairs;  // a call each

 private:
  Model& model_;
};

// Members of the families that a cache must go with, by name.
std::map<std::string, TransformerConfig> decoders() {
  std::map<std::string, TransformerConfig> all;
  const auto add = [&](const std::string& name, auto&& change) {
    TransformerConfig config = decoder();
    change(config);
    all[name] = config;
  };
  add("learned", [](auto& c) { c.position = LearnedPositionConfig{}; });
  add("sinusoidal", [](auto& c) { c.position = SinusoidalPositionConfig{}; });
  add("rope, grouped", [](auto& c) {
    c.position = RopePositionConfig{};
    c.kv_heads = 2;
  });
  add("rope, interleaved",
      [](auto& c) { c.position = RopePositionConfig{.layout = RopeLayout::interleaved}; });
  add("alibi, one key-value head", [](auto& c) {
    c.position = AlibiPositionConfig{};
    c.kv_heads = 1;
  });
  add("relative",
      [](auto& c) { c.position = RelativePositionConfig{.buckets = 4, .max_distance = 6}; });
  add("none, windows", [](auto& c) {
    c.position = NoPositionConfig{};
    c.window = std::vector<std::optional<std::int64_t>>{3, std::nullopt, 5};
  });
  add("post, rms norm, qk norm, caps", [](auto& c) {
    c.placement = PostPlacement{};
    c.norm = RmsNormConfig{};
    c.qk_norm = QkNormConfig{};
    c.attention_softcap = 5;
    c.logit_softcap = 10;
  });
  add("batch norm with running statistics", [](auto& c) { c.norm = BatchNormConfig{}; });
  add("dropout, which is off", [](auto& c) { c.dropout = c.attention_dropout = 0.5; });
  add("tied", [](auto& c) { c.tied = true; });
  return all;
}

}  // namespace

TEST_CASE("generation with the cache gives the tokens that it gives without", "[generation]") {
  for (const auto& [name, config] : decoders()) {
    INFO(name);
    const ModelPtr model = config.build(1, kIds);
    CHECK(model->continues() == Continues::within_context);
    for (const double temperature : {0.0, 1.0}) {
      // 40 tokens are more than three contexts.
      GenerationOptions options{.tokens = 40, .temperature = temperature, .seed = 5};
      const std::vector<std::int64_t> with = generated(*model, options);
      options.cache = false;
      CHECK(with == generated(*model, options));
      CHECK(with.size() == 40);
      // Not one token over and over: the comparison says something.
      if (temperature > 0) CHECK(std::count(with.begin(), with.end(), with[0]) < 40);
    }
  }
}

TEST_CASE("a token costs one position's products, and attention over the context", "[generation]") {
  const ModelPtr model = decoder().build(1, kIds);
  Counting counting(*model);
  (void)generated(counting, {.tokens = 30}, {3, 1, 4});
  // The prompt; then a token each until the context of 12 is full; then the half that is kept, 6
  // tokens, anew, and so on.
  std::vector<std::int64_t> positions{3}, pairs{9};
  for (std::int64_t length = 4; positions.size() < 30; ++length) {
    const bool full = length > kContext;
    if (full) length = kContext / 2;
    positions.push_back(full ? length : 1);
    pairs.push_back(full ? length * length : length);
  }
  CHECK(counting.positions == positions);
  CHECK(counting.pairs == pairs);

  Counting slow(*model);
  (void)generated(slow, {.tokens = 9, .cache = false}, {3, 1, 4});
  CHECK(slow.positions == std::vector<std::int64_t>{3, 4, 5, 6, 7, 8, 9, 10, 11});
}

TEST_CASE("a norm behind the embeddings that looks at other tokens keeps a decoder from a cache",
          "[generation]") {
  TransformerConfig config = decoder();
  config.kind = TransformerKind::encoder_decoder;
  config.layers = 1;
  config.norm = std::vector<NormConfig>{BatchNormConfig{{.track = false}}, LayerNormConfig{}};
  Signature in = kIds;
  in.source = in.shape;
  CHECK(config.build(1, in)->continues() == Continues::within_context);
  config.embedding_norm = true;
  CHECK(config.build(1, in)->continues() == Continues::no);
}

TEST_CASE("a model that looks at later tokens keeps no cache, and generates all the same",
          "[generation]") {
  for (const auto& change : std::vector<std::function<void(TransformerConfig&)>>{
           [](auto& c) { c.norm = BatchNormConfig{{.track = false}}; },
           [](auto& c) { c.norm = InstanceNormConfig{}; },
           [](auto& c) { c.kind = TransformerKind::encoder; }}) {
    TransformerConfig config = decoder();
    change(config);
    const ModelPtr model = config.build(1, kIds);
    CHECK(model->continues() == Continues::no);
    Counting counting(*model);
    (void)generated(counting, {.tokens = 4}, {3, 1, 4});
    CHECK(counting.positions == std::vector<std::int64_t>{3, 4, 5, 6});
  }
}

TEST_CASE("a recurrent model carries its state on, one step a token, without end", "[generation]") {
  for (const CellKind cell : {CellKind::lstm, CellKind::gru}) {
    RecurrentConfig config;
    config.cell = cell;
    config.layers = 2;
    config.hidden = 16;
    config.init = NormalInit{.std = 0.5};
    const ModelPtr model = config.build(1, kIds);
    Counting counting(*model), slow(*model);
    GenerationOptions options{.tokens = 40, .temperature = 1};
    const std::vector<std::int64_t> with = generated(counting, options);
    options.cache = false;
    CHECK(with == generated(slow, options));
    std::vector<std::int64_t> positions(40, 1);
    positions[0] = 3;
    CHECK(counting.positions == positions);
    CHECK(slow.positions.back() == 3 + 39);
  }
}

TEST_CASE("an encoder-decoder reads its source once, and goes on token by token", "[generation]") {
  TransformerConfig config = decoder();
  config.kind = TransformerKind::encoder_decoder;
  for (const PositionConfig& position :
       {PositionConfig(LearnedPositionConfig{}), PositionConfig(SinusoidalPositionConfig{}),
        PositionConfig(RelativePositionConfig{.buckets = 4, .max_distance = 6})}) {
    config.position = position;
    Signature in = kIds;
    in.source = Shape{5};
    const ModelPtr model = config.build(1, in);
    CHECK(model->continues() == Continues::within_context);
    model->eval();
    const NoGrad off;
    const Tensor ids = Tensor::from_ids({2, 4}, std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7, 8});
    Forward pass;
    pass.source = Tensor::from_ids({2, 5}, std::vector<std::int64_t>{3, 1, 4, 1, 5, 9, 2, 6, 0, 0});
    pass.source_mask = Tensor::from({2, 5}, {1, 1, 1, 1, 1, 1, 1, 1, 0, 0}, DType::u8);
    const Tensor whole = model->forward(ids, pass);
    Cache cache;
    pass.cache = &cache;
    for (std::int64_t t = 0; t < 4; ++t) {
      CHECK(same_bits(model->forward(slice(ids, 1, t, t + 1), pass), slice(whole, 1, t, t + 1)));
      pass.source = Tensor();  // never asked for again
    }
  }
}

TEST_CASE("how tokens are picked: temperature, top-k, seed", "[generation]") {
  const ModelPtr model = decoder().build(1, kIds);
  const std::vector<std::int64_t> likeliest = generated(*model, {.tokens = 20, .temperature = 0});
  SECTION("a temperature near 0 and a top-k of 1 take the likeliest") {
    CHECK(generated(*model, {.tokens = 20, .temperature = 1e-9}) == likeliest);
    CHECK(generated(*model, {.tokens = 20, .temperature = 3, .top_k = 1}) == likeliest);
  }
  SECTION("a seed gives the same tokens again, another one others") {
    const GenerationOptions options{.tokens = 20, .temperature = 2, .seed = 1};
    CHECK(generated(*model, options) == generated(*model, options));
    CHECK(generated(*model, options) != generated(*model, {.tokens = 20, .temperature = 2}));
    CHECK(generated(*model, options) != likeliest);
  }
  SECTION("of the K likeliest, each at the rate of its softmax") {
    std::vector<double> counts(kVocab);
    const std::vector<std::int64_t> prompt{5, 2};
    const int draws = 2000;
    for (int seed = 0; seed < draws; ++seed) {
      const GenerationOptions options{
          .tokens = 1, .temperature = 2, .top_k = 3, .seed = static_cast<std::uint64_t>(seed)};
      counts[static_cast<std::size_t>(generated(*model, options, prompt)[0])] += 1.0 / draws;
    }
    const std::vector<double> all = (*model)(Tensor::from_ids(Shape{1, 2}, prompt)).to_vector();
    std::vector<double> logits(all.end() - kVocab, all.end()), order = logits;
    std::sort(order.rbegin(), order.rend());
    double total = 0;
    for (std::size_t i = 0; i < 3; ++i) total += std::exp(order[i] / 2);
    for (std::size_t id = 0; id < kVocab; ++id) {
      const double expected = logits[id] >= order[2] ? std::exp(logits[id] / 2) / total : 0;
      CHECK(std::abs(counts[id] - expected) < (expected == 0 ? 1e-12 : 0.05));
    }
  }
  SECTION("without a prompt it starts from token 0, and no token asks for no pass") {
    CHECK(generated(*model, {.tokens = 5, .temperature = 0}, {}) ==
          generated(*model, {.tokens = 5, .temperature = 0}, {0}));
    Counting counting(*model);
    CHECK(generated(counting, {.tokens = 0}).empty());
    CHECK(counting.positions.empty());
  }
  SECTION("a prompt longer than the context") {
    std::vector<std::int64_t> prompt(3 * kContext, 2);
    Counting counting(*model);
    CHECK(generated(counting, {.tokens = 2}, prompt).size() == 2);
    CHECK(counting.positions == std::vector<std::int64_t>{kContext / 2, 1});
  }
}

TEST_CASE("the verb: text from a run, and what it refuses", "[generation]") {
  const TemporaryFolder folder;
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder / name) << text;
    return folder / name;
  };
  std::string verse;
  for (int i = 0; i < 12; ++i) verse += "abcabcabcabd\n";
  const std::string text = write("a.txt", verse);
  const auto train = [&](const std::string& name, const std::string& data,
                         const std::string& kind) {
    const std::string config =
        write(name + ".json", R"({"data": )" + data + R"(, "model": {"type": "transformer",
      "kind": ")" + kind + R"(", "layers": 1, "width": 8}, "train": {"steps": 2, "batch": 2}})");
    const ProcessResult run = run_norma("train " + config + " --quiet --out " + folder / name);
    INFO(run.err);
    CHECK(run.status == 0);
    return folder / name;
  };
  const std::string of_text = R"({"type": "text", "path": ")" + text + R"(", "context": 6})";
  const std::string run = train("decoder", of_text, "decoder");
  const ProcessResult first = run_norma("generate " + run + " abca --tokens 9 --seed 3");
  INFO(first.err);
  CHECK(first.status == 0);
  CHECK(first.out.substr(0, 4) == "abca");
  CHECK(first.out.size() == 4 + 9 + 1);
  CHECK(run_norma("generate " + run + " abca --tokens 9 --seed 3").out == first.out);
  CHECK(run_norma("generate " + run + " abca --tokens 9 --seed 4").out != first.out);
  const ProcessResult unknown = run_norma("generate " + run + " abxa");
  CHECK(unknown.status == 1);
  CHECK(contains(unknown.err,
                 "PROMPT: the character \"x\" (U+0078, at byte 2) does not stand in the "
                 "training text"));
  CHECK(unknown.out.empty());
  for (const char* wrong : {"--temperature=-1", "--temperature=nan", "--top-k=-1", "--tokens=-1"}) {
    CHECK(run_norma("generate " + run + " a " + wrong).status == 2);
  }
  const ProcessResult sees_all =
      run_norma("generate " + train("encoder", of_text, "encoder") + " abca");
  CHECK(sees_all.status == 2);
  CHECK(contains(sees_all.err,
                 "its model is an encoder, which sees later tokens; generate needs a "
                 "decoder or a recurrent model"));
  const ProcessResult no_text =
      run_norma("generate " +
                train("shift", R"({"type": "shift", "vocab": 5, "length": 6})", "decoder") + " a");
  CHECK(no_text.status == 2);
  CHECK(contains(no_text.err, "its data are \"shift\", not text; generate needs a run on text"));
  CHECK(run_norma("generate " + folder / "nowhere").status == 1);
}

TEST_CASE("a model that gives NaN generates nothing", "[generation]") {
  const ModelPtr model = decoder().build(1, kIds);
  {
    const NoGrad off;
    for (Tensor p : model->parameters()) p.fill_(std::numeric_limits<double>::quiet_NaN());
  }
  NORMA_CHECK_ERROR(generated(*model, {.tokens = 1}),
                    "generate: the model gives NaN; its run diverged, take an earlier checkpoint");
}

}  // namespace norma::test
