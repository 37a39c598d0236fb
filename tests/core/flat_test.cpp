#include "core/flat.h"

#include <cstring>

#include "core/autograd.h"
#include "tests/support/catch.h"

namespace norma {
namespace {

Tensor parameter(const Shape& shape, std::initializer_list<double> values,
                 DType dtype = DType::f32) {
  return Tensor::from(shape, values, dtype).set_requires_grad();
}

TEST_CASE("flat parameters keep values and handles", "[core]") {
  const Tensor w = parameter({2, 2}, {1, 2, 3, 4}), b = parameter({3}, {5, 6, 7});
  const Tensor handle = w;
  FlatParameters flat({{"w", w}, {"b", b}});
  CHECK(flat.count() == 2);
  CHECK(flat.numel() == 7);
  CHECK(flat.flat_size() == 32);  // 16 floats are 64 bytes
  CHECK(flat.begin(1) == 16);
  CHECK(flat.end(1) == 32);
  CHECK(handle.to_vector() == std::vector<double>{1, 2, 3, 4});
  CHECK(handle.same(flat.tensor(0)));
  CHECK(handle.requires_grad());

  flat.weights().mutable_data<float>()[17] = 60;
  CHECK(b.to_vector() == std::vector<double>{5, 60, 7});
  const auto all = flat.weights().to_vector();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if ((i >= 4 && i < 16) || i >= 19) CHECK(all[i] == 0);
  }
  for (std::int64_t i = 0; i < 2; ++i) {
    CHECK(reinterpret_cast<std::uintptr_t>(flat.tensor(i).raw()) % 64 == 0);
  }
}

TEST_CASE("a parameter has its own version", "[core]") {
  const Tensor w = parameter({2}, {1, 2}), b = parameter({2}, {3, 4});
  const auto before = w.version();
  FlatParameters flat({{"w", w}, {"b", b}});
  CHECK(w.version() > before);  // a graph from before must notice
  const auto vw = w.version(), vb = b.version();
  flat.touch(0);
  CHECK(w.version() > vw);
  CHECK(b.version() == vb);
}

TEST_CASE("tied parameters lie there once", "[core]") {
  const Tensor w = parameter({2}, {1, 2});
  FlatParameters flat({{"tokens.weight", w}, {"head.weight", w}});
  CHECK(flat.count() == 1);
  CHECK(flat.name(0) == "tokens.weight");
}

TEST_CASE("gradients come into the flat buffer", "[core]") {
  Tensor w = parameter({2}, {1, 2}), b = parameter({2}, {3, 4});
  w.set_grad(Tensor::from({2}, {10, 20}));  // from before
  FlatParameters flat({{"w", w}, {"b", b}});
  CHECK(flat.has_gradient(0));
  CHECK(!flat.has_gradient(1));
  CHECK(flat.gradients().to_vector()[1] == 20);
  b.set_grad(Tensor::from({2}, {30, 40}));
  flat.gather_gradients();
  CHECK(flat.gradients().to_vector()[16] == 30);
  CHECK(b.grad().raw() == b.grad_buffer().raw());
  flat.clear_gradients();
  CHECK(!flat.has_gradient(0));
  CHECK(!w.grad().defined());
}

TEST_CASE("backward writes into the flat gradients", "[core]") {
  Tensor w = parameter({2}, {1, 2});
  FlatParameters flat({{"w", w}});
  for (int pass = 0; pass < 2; ++pass) {
    backward(w, Tensor::from({2}, {7, 8}));
    CHECK(flat.gradients().to_vector()[1] == 8);  // not 16: the first one was cleared
    CHECK(w.grad().raw() == flat.gradients().raw());
    flat.clear_gradients();
  }
}

TEST_CASE("what cannot be flattened is refused", "[core]") {
  const Tensor w = parameter({2}, {1, 2}), d = parameter({2}, {1, 2}, DType::f64);
  NORMA_CHECK_ERROR(FlatParameters({{"w", w}, {"d", d}}), "'d' is f64 but 'w' is f32");
  NORMA_CHECK_ERROR(FlatParameters({{"w", w}, {"w", d}}), "the name 'w' stands there twice");
  NORMA_CHECK_ERROR(FlatParameters({{"w", Tensor()}}), "'w' is undefined");
  NORMA_CHECK_ERROR(FlatParameters({{"h", Tensor::zeros({2}, DType::bf16)}}), "f32 or f64");
}

TEST_CASE("globs match whole names", "[core]") {
  CHECK(matches_glob("blocks.0.attention.q.weight", "blocks.*.q.weight"));
  CHECK(matches_glob("blocks.0.norm.weight", "*norm*"));
  CHECK(matches_glob("a", "?"));
  CHECK(matches_glob("aXbXc", "a*X*c"));
  CHECK(matches_glob("", "*"));
  CHECK(!matches_glob("blocks.0.norm.weight", "norm*"));
  CHECK(!matches_glob("ab", "?"));
  CHECK(!matches_glob("weight2", "*weight"));
}

}  // namespace
}  // namespace norma
