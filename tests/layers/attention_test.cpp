// The attention layer: cross-attention, position codes, masks. The op has its own test.
#include "layers/attention.h"

#include <algorithm>
#include <cmath>

#include "core/ops/arithmetic.h"
#include "core/ops/linear.h"
#include "core/ops/movement.h"
#include "core/ops/reduce.h"
#include "tests/support/op_case.h"

namespace norma::test {
namespace {

const Scope kScope(1, TorchInit{}, DType::f64);

Signature sequence(std::int64_t length, std::int64_t width) {
  return {.shape = Shape{length, width}, .vocab = 0, .features_last = true};
}

// sin(0.7 i + phase): numbers that any program can write down.
Tensor wave(const Shape& shape, double phase) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < shape.numel(); ++i) {
    values.push_back(std::sin(0.7 * static_cast<double>(i) + phase));
  }
  return Tensor::from(shape, values, DType::f64);
}

}  // namespace

TEST_CASE("cross-attention: torch.nn.MultiheadAttention with kdim, vdim and key_padding_mask") {
  AttentionConfig config;
  config.heads = 2;
  Attention layer(config, kScope, sequence(3, 4), {.memory = Shape{5, 3}});
  double phase = 0;
  std::vector<NamedTensor> state;
  for (const char* name : {"q.weight", "k.weight", "v.weight", "q.bias", "k.bias", "v.bias",
                           "out.weight", "out.bias"}) {
    state.push_back({name, wave(find_tensor(layer.state_dict(), name)->tensor.shape(), ++phase)});
  }
  layer.load_state_dict(state);
  Forward pass;
  pass.memory = wave({2, 5, 3}, 10);
  pass.memory.set_requires_grad(true);
  pass.source_mask = Tensor::from({2, 5}, {1, 1, 1, 0, 0, 1, 0, 1, 1, 1}, DType::u8);
  // The mask of the queries' own sequence is none of the keys'.
  pass.mask = Tensor::zeros({2, 3}, DType::u8);
  const Tensor y = layer.forward(wave({2, 3, 4}, 9), pass);
  // torch 2.13.0, f64
  CHECK(compare(y.to_vector(),
                {2.39576297305703,   -1.1571587997284971, 2.0483012841494124, -2.6181651610505092,
                 1.1645231229319029, -0.0997414970805522, 1.2868967223455707, -2.240757686861233,
                 0.8328777423366387, 0.07828979993104446, 1.2830519721757463, -2.4115437648642337,
                 2.3958726032991806, -1.0931890579548682, 1.9276442142554255, -2.454763329196669,
                 0.9775092146454976, 0.05801306176938603, 1.1766308912504941, -2.1907223867708145,
                 3.0550576837866834, -1.5552113710726476, 2.1391146243818855, -2.3912453057019185},
                1e-12) == "");
  backward(sum(y * y));
  CHECK(compare(pass.memory.grad().to_vector(),
                {0.005140840611334241,
                 10.409862954140596,
                 15.918663861741974,
                 -0.3237821522599349,
                 1.966778605677952,
                 3.3323326536020557,
                 8.414119306157204,
                 -6.620318090059779,
                 -18.541116443197982,
                 0,
                 0,
                 0,
                 0,
                 0,
                 0,
                 4.261429955516068,
                 -2.804995170895694,
                 -8.552187239176646,
                 0,
                 0,
                 0,
                 6.101510320004941,
                 2.721690080941624,
                 -1.9381835307691664,
                 4.6153321557323235,
                 -2.7812914206325425,
                 -8.869830182996678,
                 -6.90409865092526,
                 8.305900599421452,
                 19.60950501458334},
                1e-11) == "");
}

TEST_CASE("cross-attention over the own sequence is self-attention, with a norm on q, k and v") {
  AttentionConfig config;
  config.heads = 4;
  config.kv_heads = 2;
  config.qk_norm = QkNormConfig{};
  const AttentionParts parts{.value_norm = true};
  Attention self(config, kScope, sequence(6, 8), parts);
  AttentionParts crossed = parts;
  crossed.memory = Shape{6, 8};
  Attention cross(config, kScope, sequence(6, 8), crossed);
  std::vector<std::string> names;
  for (const NamedTensor& p : self.state_dict()) names.push_back(p.name);
  CHECK(std::count(names.begin(), names.end(), "v_norm.weight") == 1);
  const Tensor x = random_tensor({2, 6, 8}, 3);
  Forward pass;
  pass.memory = x;
  CHECK(same_bits(self(x), cross.forward(x, pass)));
}

TEST_CASE("cross-attention refuses what it cannot have") {
  AttentionConfig config;
  const auto build = [&] {
    Attention layer(config, kScope.child("a"), sequence(3, 4), {.memory = Shape{3, 4}});
    return layer(Tensor::zeros({1, 3, 4}, DType::f64));
  };
  NORMA_CHECK_ERROR(build(), "attention: a reads an encoded source; the pass has none");
  config.causal = true;
  NORMA_CHECK_ERROR(build(), "cross-attention sees the whole source");
  config.causal = false;
  config.position = RopePositionConfig{};
  NORMA_CHECK_ERROR(build(), "position \"rope\" does not go with cross-attention");
  config.position = LearnedPositionConfig{};
  config.heads = 2;
  NORMA_CHECK_ERROR(Attention(config, kScope, sequence(3, 4)),
                    "position \"learned\" is added to the embeddings of a transformer");
}

TEST_CASE("relative positions: the buckets of T5") {
  const std::vector<std::int64_t> distances{
      -200, -128, -127, -100, -64, -63, -32, -31, -20, -17, -16, -15, -12, -11, -9, -8,  -7,
      -1,   0,    1,    5,    7,   8,   11,  12,  15,  16,  17,  33,  64,  90,  91, 128, 500};
  const auto buckets = [&](Direction direction, const RelativePositionConfig& config) {
    std::vector<std::int64_t> out;
    for (std::int64_t d : distances) out.push_back(relative_bucket(d, direction, config));
    return out;
  };
  // transformers 5.24.0, T5Attention._relative_position_bucket
  CHECK(buckets(Direction::both, {}) ==
        std::vector<std::int64_t>{15, 15, 15, 15, 14, 13, 12, 11, 10, 10, 10, 9,
                                  9,  8,  8,  8,  7,  1,  0,  17, 21, 23, 24, 24,
                                  25, 25, 26, 26, 28, 30, 30, 31, 31, 31});
  CHECK(buckets(Direction::causal, {}) ==
        std::vector<std::int64_t>{31, 31, 31, 30, 26, 26, 21, 21, 17, 16, 16, 15, 12, 11, 9, 8, 7,
                                  1,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0, 0, 0});
  // sum over d = -3000 .. 3000 of (d + 3001) bucket(d), from the same source
  const auto sum_of = [&](std::int64_t n, std::int64_t far, Direction direction) {
    std::int64_t total = 0;
    for (std::int64_t d = -3000; d <= 3000; ++d) {
      total += (d + 3001) * relative_bucket(d, direction, {.buckets = n, .max_distance = far});
    }
    return total;
  };
  CHECK(sum_of(32, 128, Direction::both) == 484331390);
  CHECK(sum_of(32, 128, Direction::causal) == 136867255);
  CHECK(sum_of(8, 12, Direction::both) == 108005990);
  CHECK(sum_of(8, 12, Direction::causal) == 31432565);
  CHECK(sum_of(64, 512, Direction::both) == 977443706);
  CHECK(sum_of(64, 512, Direction::causal) == 267033466);
  CHECK(sum_of(32, 1000, Direction::both) == 478881574);
  CHECK(sum_of(32, 1000, Direction::causal) == 129986332);
  CHECK(sum_of(9, 128, Direction::both) == 107939968);
  CHECK(sum_of(9, 128, Direction::causal) == 35648548);
  CHECK(sum_of(33, 100, Direction::both) == 484577472);
}

TEST_CASE("relative positions: the table gets its gradient through the fused op") {
  for (const bool causal : {false, true}) {
    AttentionConfig config;
    config.heads = 2;
    config.causal = causal;
    config.position = RelativePositionConfig{.buckets = 4, .max_distance = 5};
    Attention layer(config, kScope, sequence(6, 4));
    const Tensor x = random_tensor({2, 6, 4}, 5);
    const Tensor table = find_tensor(layer.state_dict(), "relative.weight")->tensor;
    REQUIRE(table.shape() == Shape{4, 2});
    const Tensor weights = random_tensor({2, 6, 4}, 6);
    const auto loss = [&] { return sum(layer(x) * weights); };
    layer.clear_gradients();
    backward(loss());
    const std::vector<double> got = table.grad().to_vector();
    const std::vector<double> start = table.to_vector();
    std::vector<double> expected;
    for (std::size_t i = 0; i < start.size(); ++i) {
      const NoGrad off;
      const auto at = [&](double step) {
        std::vector<double> moved = start;
        moved[i] += step;
        Tensor t = table;
        t.copy_(Tensor::from(table.shape(), moved, DType::f64));
        return loss().item();
      };
      expected.push_back((at(1e-5) - at(-1e-5)) / 2e-5);
      (void)at(0);
    }
    CHECK(compare(got, expected, 1e-8) == "");
    // With both directions, the first bucket of the upper half would hold a distance of 0: unused.
    CHECK(std::count(got.begin(), got.end(), 0.0) == (causal ? 0 : 2));
  }
}

TEST_CASE("a bias that the pass carries is added, and a layer's own comes before it") {
  AttentionConfig config;
  config.heads = 2;
  const RelativePositionConfig relative{.buckets = 4, .max_distance = 5};
  RelativeBias bias(relative, 2, Direction::both, kScope.child("relative"));
  Attention plain(config, kScope, sequence(6, 4));
  config.position = relative;
  Attention own(config, kScope, sequence(6, 4));
  const Tensor x = random_tensor({2, 6, 4}, 5);
  Forward pass;
  pass.attention_bias = bias.forward(6, 6);
  CHECK(same_bits(plain.forward(x, pass), own(x)));
  CHECK_FALSE(same_bits(plain(x), own(x)));
  // The last rows of the whole: what a text needs that goes on.
  CHECK(same_bits(bias.forward(2, 6), slice(bias.forward(6, 6), 1, 4, 6)));
}

TEST_CASE("relative positions: sizes that cannot be are refused") {
  const auto problems = [](RelativePositionConfig config) {
    config::Problems found;
    config.check(found, "position");
    return error_of([&] { found.raise(""); });
  };
  CHECK(
      contains(problems({.buckets = 32, .max_distance = 16}), "position.max_distance: 32 buckets"));
}

TEST_CASE("an observer that wants logits is told the largest one of every head") {
  struct Largest final : Observer {
    void stream(std::string_view, const Tensor&) override {}
    void branch(std::string_view, const Tensor&) override {}
    void largest_logit(std::string_view at, const Tensor& x) override {
      path = at;
      largest = x;
    }
    [[nodiscard]] bool wants_logits() const override { return wants; }
    bool wants = true;
    std::string path;
    Tensor largest;
  };
  // The cap and the bias come behind it: the raw products of q and k by hand.
  AttentionConfig config;
  config.heads = 2;
  config.causal = true;
  config.softcap = 0.1;
  config.position = AlibiPositionConfig{};
  Attention layer(config, kScope.child("blocks.0.attention"), sequence(5, 4));
  const Tensor x = random_tensor({2, 5, 4}, 7);
  const auto product = [&](const std::string& name) {
    const std::vector<NamedTensor> state = layer.state_dict();
    return linear(x, find_tensor(state, name + ".weight")->tensor,
                  find_tensor(state, name + ".bias")->tensor)
        .to_vector();
  };
  const std::vector<double> q = product("q"), k = product("k");
  std::vector<double> expected(2, -1e300);
  for (std::size_t b = 0; b < 2; ++b) {
    for (std::size_t i = 0; i < 5; ++i) {
      for (std::size_t j = 0; j <= i; ++j) {
        for (std::size_t h = 0; h < 2; ++h) {
          const std::size_t from = (b * 5 + i) * 4 + 2 * h, to = (b * 5 + j) * 4 + 2 * h;
          expected[h] =
              std::max(expected[h], (q[from] * k[to] + q[from + 1] * k[to + 1]) / std::sqrt(2.0));
        }
      }
    }
  }
  Largest observer;
  Forward pass;
  pass.observer = &observer;
  const Tensor watched = layer.forward(x, pass);
  CHECK(observer.path == "blocks.0.attention");
  CHECK(compare(observer.largest.to_vector(), expected, 1e-12) == "");
  CHECK(same_bits(watched, layer(x)));
  observer.wants = false;
  observer.path = "";
  (void)layer.forward(x, pass);
  CHECK(observer.path.empty());
}

namespace {

// Heads, positions and limits that masks and caches must go with.
std::vector<AttentionConfig> causal_configs() {
  std::vector<AttentionConfig> all;
  const auto add = [&](std::int64_t kv_heads, const PositionConfig& position) -> AttentionConfig& {
    AttentionConfig config;
    config.heads = 4;
    config.kv_heads = kv_heads;
    config.head_width = 6;
    config.causal = true;
    config.position = position;
    return all.emplace_back(config);
  };
  add(4, NoPositionConfig{});
  add(2, AlibiPositionConfig{}).softcap = 2;
  add(1, RopePositionConfig{.layout = RopeLayout::half}).qk_norm = QkNormConfig{};
  add(2, RopePositionConfig{.layout = RopeLayout::interleaved}).window = 3;
  add(1, RelativePositionConfig{.buckets = 4, .max_distance = 6});
  // Queries, keys and values in one op:
  add(4, AlibiPositionConfig{}).softcap = 2;
  add(4, RelativePositionConfig{.buckets = 4, .max_distance = 6}).window = 3;
  return all;
}

}  // namespace

TEST_CASE("masks: what is hidden has no effect and no gradient; a query without a key gives 0") {
  const std::int64_t length = 7;
  for (AttentionConfig config : causal_configs()) {
    for (const bool causal : {true, false}) {
      config.causal = causal;
      Attention layer(config, kScope, sequence(length, 5));
      // Sample 0: keys 1 and 4 do not count, query 2 may look at nothing, query 5 at key 3 alone.
      // Sample 1 is all padding.
      std::vector<double> keys(2 * 7, 1.0), pairs(7 * 7, 1.0);
      for (const std::size_t j : {1, 4}) keys[j] = 0;
      std::fill_n(keys.begin() + 7, 7, 0.0);
      for (std::size_t j = 0; j < 7; ++j) pairs[2 * 7 + j] = 0, pairs[5 * 7 + j] = j == 3;
      Forward pass;
      pass.mask = Tensor::from({2, 7}, keys, DType::u8);
      pass.visible = Tensor::from({1, 7, 7}, pairs, DType::u8);
      const auto run = [&](const std::vector<Tensor>& in) { return layer.forward(in[0], pass); };
      const Tensor x = random_tensor({2, 7, 5}, 9);
      CHECK(check_gradient(run, {x}) == "");
      CHECK(check_second_gradient(run, {x}) == "");
      const std::vector<double> y = run({x}).to_vector();
      const std::vector<double> bias =
          find_tensor(layer.state_dict(), "out.bias")->tensor.to_vector();
      const auto row = [&](const std::vector<double>& of, std::size_t t) {
        return std::vector<double>(of.begin() + static_cast<std::ptrdiff_t>(5 * t),
                                   of.begin() + static_cast<std::ptrdiff_t>(5 * t + 5));
      };
      CHECK(row(y, 2) == bias);
      for (std::size_t t = 7; t < 14; ++t) CHECK(row(y, t) == bias);
      // Another token at a hidden place: no other row changes. At key 3, query 5 changes.
      const auto changed = [&](std::size_t at) {
        std::vector<double> values = x.to_vector();
        for (std::size_t c = 0; c < 5; ++c) values[5 * at + c] += 1;
        const std::vector<double> moved =
            run({Tensor::from({2, 7, 5}, values, DType::f64)}).to_vector();
        std::vector<std::size_t> rows;
        for (std::size_t t = 0; t < 14; ++t) {
          if (row(moved, t) != row(y, t)) rows.push_back(t);
        }
        return rows;
      };
      CHECK(changed(4) == std::vector<std::size_t>{4});
      CHECK(changed(9).empty());
      const std::vector<std::size_t> of_three = changed(3);
      CHECK(std::count(of_three.begin(), of_three.end(), 5) == (1));
      CHECK(std::count(of_three.begin(), of_three.end(), 2) == 0);
    }
  }
}

TEST_CASE("a cache: token by token, and in pieces, gives the bits of the whole") {
  for (const AttentionConfig& config : causal_configs()) {
    Attention layer(config, kScope, sequence(20, 24));
    layer.eval();
    const NoGrad off;
    const Tensor x = random_tensor({2, 20, 24}, 4);
    const Tensor whole = layer(x);
    for (const std::int64_t piece : {1, 7}) {
      Cache cache;
      Forward pass;
      pass.cache = &cache;
      for (std::int64_t t = 0; t < 20; t += piece) {
        const std::int64_t end = std::min<std::int64_t>(20, t + piece);
        CHECK(same_bits(layer.forward(slice(x, 1, t, end), pass), slice(whole, 1, t, end)));
        cache.length = end;
      }
    }
  }
  AttentionConfig config;
  Attention seeing_all(config, kScope.child("a"), sequence(4, 4));
  Cache cache;
  Forward pass;
  pass.cache = &cache;
  NORMA_CHECK_ERROR(seeing_all.forward(Tensor::zeros({1, 1, 4}, DType::f64), pass),
                    "attention: a is not causal, so nothing can be kept for later tokens");
}

TEST_CASE("a cache keeps the keys and values of a source, which is read once") {
  AttentionConfig config;
  Attention layer(config, kScope, sequence(3, 4), {.memory = Shape{5, 4}});
  const Tensor x = random_tensor({2, 3, 4}, 4);
  Cache cache;
  Forward pass;
  pass.cache = &cache;
  pass.memory = random_tensor({2, 5, 4}, 5);
  const Tensor first = layer.forward(x, pass);
  pass.memory = Tensor();
  CHECK(same_bits(layer.forward(x, pass), first));
}

TEST_CASE("masks: norms of queries and keys over other tokens do not see padding") {
  for (const QkNormOver over : {QkNormOver::head, QkNormOver::width}) {
    for (const NormConfig& norm :
         {NormConfig(BatchNormConfig{}), NormConfig(InstanceNormConfig{})}) {
      AttentionConfig config;
      config.heads = 2;
      config.qk_norm = QkNormConfig{.norm = norm, .over = over};
      Attention layer(config, kScope, sequence(4, 6));
      const Tensor x = wave({2, 4, 6}, 1);
      Tensor other = x.clone();
      for (int i = 12; i < 24; ++i) other.mutable_data<double>()[i] = 7 + i;
      Forward pass;
      pass.mask = Tensor::from({2, 4}, {1, 1, 0, 0, 1, 1, 1, 1}, DType::u8);
      const auto tokens = [](const Tensor& y) { return slice(slice(y, 0, 0, 1), 1, 0, 2); };
      CHECK(same_bits(tokens(layer.forward(x, pass)), tokens(layer.forward(other, pass))));
      CHECK_FALSE(same_bits(tokens(layer(x)), tokens(layer(other))));

      Attention cross(config, kScope, sequence(3, 6), {.memory = Shape{4, 6}});
      const Tensor queries = wave({2, 3, 6}, 2);
      Forward reading;
      reading.source_mask = pass.mask;
      const auto answer = [&](const Tensor& memory) {
        reading.memory = memory;
        return cross.forward(queries, reading);
      };
      CHECK(same_bits(answer(x), answer(other)));
    }
  }
}

}  // namespace norma::test
