#include "core/ops/indexing.h"

#include "core/ops/arithmetic.h"
#include "core/ops/movement.h"
#include "core/ops/reduce.h"
#include "core/parallel.h"
#include "core/random.h"
#include "tests/support/op_case.h"

namespace norma::test {
namespace {

Tensor ids(const Shape& shape, const std::vector<std::int64_t>& values) {
  return Tensor::from_ids(shape, values);
}

Tensor random_ids(const Shape& shape, std::int64_t limit, std::uint64_t seed) {
  RandomStream stream(random_key(seed, "test/ids"));
  std::vector<std::int64_t> v(static_cast<std::size_t>(shape.numel()));
  for (auto& i : v) i = stream.below(limit);
  return ids(shape, v);
}

// The index of a sample: x's shape with `m` along axis 1.
Tensor index_for(const Tensor& x, std::int64_t m) {
  Shape shape = x.shape();
  shape.set(1, m);
  return random_ids(shape, x.size(1), 7);
}

NORMA_OP_CASE(gather, middle_axis) {
  return {.run = [](const auto& in) { return gather(in[0], index_for(in[0], 4), 1); },
          .reference =
              [](const auto& in) {
                const Tensor index = index_for(in[0], 4);
                const auto x = in[0].to_vector();
                const auto k = index.to_ids();
                const std::int64_t inner = in[0].shape().numel(2, in[0].rank());
                std::vector<double> y;
                for (std::int64_t j = 0; j < index.numel(); ++j) {
                  const std::int64_t o = j / (4 * inner);
                  const std::int64_t row = o * in[0].size(1) + k[static_cast<std::size_t>(j)];
                  y.push_back(x[static_cast<std::size_t>(row * inner + j % inner)]);
                }
                return y;
              },
          .samples = {{{2, 3, 2}}, {{3, 2}}, {{20, 7, 90}}},
          .tolerance_f64 = 0,
          .errors = {{[] {
                        (void)gather(Tensor::zeros({2, 3}), ids({2, 1}, {0, 3}), 1);
                      },
                      "gather: expected ids of at least 0 and less than 3; got 3 at position 1"},
                     {[] {
                        (void)gather(Tensor::zeros({2, 3}), ids({2, 1}, {-1, 0}), 1);
                      },
                      "got -1 at position 0"},
                     {[] {
                        (void)gather(Tensor::zeros({2, 3}), ids({3, 1}, {0, 0, 0}), 1);
                      },
                      "gather: expected an index of i64 with x's shape (2, 3) but for axis 1; got "
                      "i64 of (3, 1)"}}};
}

NORMA_OP_CASE(scatter_add, middle_axis) {
  return {.run =
              [](const auto& in) {
                return scatter_add(in[0], index_for(in[0], in[1].size(1)), in[1], 1);
              },
          .reference =
              [](const auto& in) {
                const std::int64_t m = in[1].size(1);
                const auto k = index_for(in[0], m).to_ids();
                auto y = in[0].to_vector();
                const auto source = in[1].to_vector();
                const std::int64_t inner = in[0].shape().numel(2, in[0].rank());
                for (std::int64_t j = 0; j < in[1].numel(); ++j) {
                  const std::int64_t o = j / (m * inner);
                  const std::int64_t row = o * in[0].size(1) + k[static_cast<std::size_t>(j)];
                  y[static_cast<std::size_t>(row * inner + j % inner)] +=
                      source[static_cast<std::size_t>(j)];
                }
                return y;
              },
          .samples = {{{2, 3, 2}, {2, 5, 2}}, {{3, 2}, {3, 4}}, {{3, 7, 90}, {3, 300, 90}}},
          .tolerance_f32 = 1e-5,
          .errors = {{[] {
                        (void)scatter_add(Tensor::zeros({2, 3}), ids({2, 1}, {0, 3}),
                                          Tensor::zeros({2, 1}), 1);
                      },
                      "scatter_add: expected ids of at least 0 and less than 3; got 3"},
                     {[] {
                        (void)scatter_add(Tensor::zeros({2, 3}), ids({2, 1}, {0, 0}),
                                          Tensor::zeros({2, 2}), 1);
                      },
                      "scatter_add: expected a source of f32 with the index's shape (2, 1)"}}};
}

OpCase embedding_case(EmbeddingOptions options) {
  return {.run =
              [options](const auto& in) {
                return embedding(in[0], random_ids({3, 50}, in[0].size(0), 3), options);
              },
          .reference =
              [](const auto& in) {
                const auto w = in[0].to_vector();
                std::vector<double> y;
                for (std::int64_t id : random_ids({3, 50}, in[0].size(0), 3).to_ids()) {
                  const auto row = w.begin() + id * in[0].size(1);
                  y.insert(y.end(), row, row + in[0].size(1));
                }
                return y;
              },
          .samples = {{{4, 2}}, {{5, 200}}, {{3000, 3}}, {{1, 65}}},
          .tolerance_f64 = 0};
}

NORMA_OP_CASE(embedding, plain) {
  OpCase c = embedding_case({});
  // Source: PaddlePaddle/Paddle#10945.
  c.errors = {{[] {
                 (void)embedding(Tensor::zeros({10, 2}), ids({2}, {3, 10}));
               },
               "embedding: expected ids of at least 0 and less than 10; got 10 at position 1"},
              {[] {
                 (void)embedding(Tensor::zeros({10, 2}), ids({2}, {-1, 0}));
               },
               "got -1 at position 0"},
              {[] { (void)embedding(Tensor::zeros({10}), ids({1}, {0})); },
               "embedding: expected a weight of (rows, width); got (10)"},
              {[] {
                 (void)embedding(Tensor::zeros({10, 2}), Tensor::zeros({2}));
               },
               "embedding: expected ids of i64; got f32"},
              {[] {
                 (void)embedding(Tensor::zeros({10, 2}), ids({1}, {0}), {.padding_id = 10});
               },
               "embedding: expected a padding_id of at least 0 and less than 10; got 10"}};
  return c;
}
// The gradient differs from that of the function here, so only `composed` is compared.
TEST_CASE("embedding: the padding row is read, but gets no gradient") {
  Tensor w = random_tensor({4, 3}, 1).set_requires_grad();
  const Tensor i = ids({2, 3}, {1, 1, 0, 3, 0, 1});
  const Tensor y = embedding(w, i, {.padding_id = 1});
  CHECK(y.shape() == Shape{2, 3, 3});
  CHECK(slice(flatten(y, 0, 1), 0, 0, 1).to_vector() == slice(w, 0, 1, 2).to_vector());
  const auto fused = grad(sum(y), {w}, {.retain_graph = true})[0];
  CHECK(fused.to_vector() == std::vector<double>{2, 2, 2, 0, 0, 0, 0, 0, 0, 1, 1, 1});
  const auto composed = grad(sum(y), {w}, {.create_graph = true})[0];
  CHECK(composed.to_vector() == fused.to_vector());
}

// Source: pytorch/pytorch#1631.
TEST_CASE("indexing: repeated indices add up") {
  Tensor x = Tensor::from({1}, {0.1}).set_requires_grad();
  const Tensor y = gather(x, ids({2}, {0, 0}), 0);
  backward(y, Tensor::from({2}, {0.2, 0.3}));
  CHECK(x.grad().item() == Approx(0.5));

  Tensor table = Tensor::zeros({4, 2}).set_requires_grad();
  sum(embedding(table, ids({2, 2}, {1, 1, 3, 1}))).backward();
  CHECK(table.grad().to_vector() == std::vector<double>{0, 0, 3, 3, 0, 0, 1, 1});
  // A second pass adds to what stands.
  sum(embedding(table, ids({1}, {2}))).backward();
  CHECK(table.grad().to_vector() == std::vector<double>{0, 0, 3, 3, 1, 1, 1, 1});
}

TEST_CASE("indexing: 20000 repeats at 8 threads give exactly 20000") {
  const int before = num_threads();
  set_num_threads(8);
  const Tensor i = ids({20000}, std::vector<std::int64_t>(20000, 1));
  for (int run = 0; run < 3; ++run) {
    Tensor table = Tensor::zeros({4, 130}).set_requires_grad();
    sum(embedding(table, i)).backward();
    const auto g = table.grad().to_vector();
    bool exact = true;
    for (std::size_t k = 0; k < g.size(); ++k) exact = exact && g[k] == (k / 130 == 1 ? 20000 : 0);
    CHECK(exact);
  }
  set_num_threads(before);
}

// Source: pytorch/pytorch#26302 and #28716 (only above 768 ids).
TEST_CASE("embedding: 769 times the padding id leave its gradient at exactly 0") {
  std::vector<std::int64_t> v(769, 0);
  v.insert(v.end(), {3, 5, 3});
  Tensor w = Tensor::ones({10, 8}).set_requires_grad();
  sum(embedding(w, ids({772}, v), {.padding_id = 0})).backward();
  const auto g = w.grad().to_vector();
  for (std::size_t k = 0; k < 8; ++k) {
    CHECK(g[k] == 0);
    CHECK(g[24 + k] == 2);
    CHECK(g[40 + k] == 1);
  }
}

TEST_CASE("embedding: half weights, and a sum that f32 alone would lose") {
  Tensor w = Tensor::ones({2, 3}, DType::bf16).set_requires_grad();
  sum(embedding(w, ids({3}, {1, 1, 0}))).backward();
  CHECK(w.grad().to_vector() == std::vector<double>{1, 1, 1, 2, 2, 2});

  // 2^24 + 1 + 1 is 2^24 in f32, one addition after the other.
  Tensor t = Tensor::zeros({1, 1}).set_requires_grad();
  backward(embedding(t, ids({3}, {0, 0, 0})), Tensor::from({3, 1}, {16777216, 1, 1}));
  CHECK(t.grad().item() == 16777218);
}

TEST_CASE("index_select: rows of any rank and type") {
  const Tensor x = Tensor::arange(12);
  CHECK(index_select(reshape(x, {3, 2, 2}), ids({2}, {2, 0})).to_vector() ==
        std::vector<double>{8, 9, 10, 11, 0, 1, 2, 3});
  Tensor w = Tensor::ones({3, 2, 2}).set_requires_grad();
  const Tensor y = index_select(w, ids({1, 2}, {1, 1}));
  CHECK(y.shape() == Shape{1, 2, 2, 2});
  sum(y).backward();
  CHECK(w.grad().to_vector() == std::vector<double>{0, 0, 0, 0, 2, 2, 2, 2, 0, 0, 0, 0});
  CHECK(index_select(w, Tensor::from_ids({0}, {})).shape() == Shape{0, 2, 2});
}

}  // namespace
}  // namespace norma::test
