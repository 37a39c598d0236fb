// Half types: what the graph keeps, and parameters with masters in f32.
#include <cstring>

#include "core/flat.h"
#include "core/ops/activations.h"
#include "core/ops/arithmetic.h"
#include "core/ops/cast.h"
#include "core/ops/indexing.h"
#include "core/ops/linear.h"
#include "core/ops/math.h"
#include "core/ops/norm_rows.h"
#include "core/ops/reduce.h"
#include "core/storage.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"

namespace norma::test {
namespace {

using Values = std::vector<double>;

TEST_CASE("the graph keeps half tensors, not their f32 copies", "[half]") {
  for (const DType half : {DType::bf16, DType::f16}) {
    const Tensor x = to(random_tensor(Shape{256, 256}, 1), half).set_requires_grad();
    const std::int64_t before = memory_stats().live_bytes;
    const Tensor y = gelu(gelu(gelu(x)));
    // y, and the two inputs in between; in f32 it would be twice that and more.
    CHECK(memory_stats().live_bytes - before <= 3 * 256 * 256 * 2 + 4096);
    backward(sum(to(y, DType::f32), {0, 1}));
    CHECK(x.grad().dtype() == half);
  }
}

TEST_CASE("the result of a norm is not kept in a half type either", "[half]") {
  const Tensor w = to(random_tensor(Shape{256, 256}, 2), DType::bf16).set_requires_grad();
  const Tensor x = to(random_tensor(Shape{256, 256}, 1), DType::bf16).set_requires_grad();
  const std::int64_t before = memory_stats().live_bytes;
  const Tensor y = linear(rms_norm(x, {}), w);
  CHECK(memory_stats().live_bytes - before <= 256 * 256 * 2 + 256 * 8 + 4096);  // y and statistics
  backward(sum(to(y, DType::f32), {0, 1}));
  // The same with the result kept: a leaf in its place.
  const Tensor kept = rms_norm(x.detach(), {}).set_requires_grad();
  const Tensor v = w.detach().set_requires_grad();
  backward(sum(to(linear(kept, v), DType::f32), {0, 1}));
  CHECK(same_bits(w.grad(), v.grad()));
}

TEST_CASE("a widened tensor that was changed is kept as it is", "[half]") {
  const Tensor x = Tensor::from({2}, {3, 5}, DType::bf16);
  const Tensor w = Tensor::from({2}, {1, 1}).set_requires_grad();
  Tensor wide = to(x, DType::f32);
  wide.fill_(7);
  backward(sum(wide * w, {0}));
  CHECK(w.grad().to_vector() == Values{7, 7});
}

TEST_CASE("second derivatives through half types, by the widened tensor too", "[half]") {
  // y = x^3 in f32 of a half x: y' = 3 x^2, y'' = 6 x.
  const Tensor x = Tensor::from({2}, {0.5, -2}, DType::bf16).set_requires_grad();
  const Tensor wide = to(x, DType::f32);
  const Tensor y = sum(wide * wide * wide, {0});
  const Tensor first = grad(y, {wide}, {.create_graph = true})[0];
  CHECK(first.to_vector() == Values{0.75, 12});
  CHECK(grad(sum(first, {0}), {wide}, {.retain_graph = true})[0].to_vector() == Values{3, -12});
  CHECK(grad(sum(first, {0}), {x})[0].to_vector() == Values{3, -12});
  // A leaf that was widened from a constant.
  const Tensor leaf = to(Tensor::from({1}, {3}, DType::bf16), DType::f32).set_requires_grad();
  const Tensor g = grad(sum(leaf * leaf, {0}), {leaf}, {.create_graph = true})[0];
  CHECK(grad(sum(g, {0}), {leaf})[0].to_vector() == Values{2});
}

TEST_CASE("masters are f32, the model's copies are half, gradients sum in f32", "[half]") {
  for (const DType half : {DType::bf16, DType::f16}) {
    Tensor w = Tensor::from({1, 2}, {1.0009765625, 3}).set_requires_grad();  // 1 + 2^-10
    Tensor table = Tensor::from({3, 2}, {1, 2, 3, 4, 5, 6}).set_requires_grad();
    const FlatParametersPtr flat = flatten({{"w", w}, {"table", table}}, half);
    CHECK(flat->dtype() == DType::f32);
    CHECK(w.dtype() == half);
    CHECK(w.to_vector() == Values{half == DType::bf16 ? 1.0 : 1.0009765625, 3});
    CHECK(find_tensor(flat->masters(), "w")->tensor.to_vector() == Values{1.0009765625, 3});

    // dw = x: 1, and then 2^-12, which 1 in a half type would swallow.
    for (const double v : {1.0, 0x1p-12}) {
      const Tensor x = Tensor::from({1, 2}, {v, v}, half);
      backward(sum(to(linear(x, w, {}), DType::f32), {0, 1}));
    }
    CHECK(w.grad().dtype() == DType::f32);
    CHECK(w.grad().to_vector() == Values{1 + 0x1p-12, 1 + 0x1p-12});
    CHECK(w.grad().raw() == w.grad_buffer().raw());  // in the flat buffer
    // An id that comes 300 times: a count that bf16 cannot hold.
    const std::vector<std::int64_t> ids(300, 1);
    backward(sum(to(embedding(table, Tensor::from_ids({300}, ids)), DType::f32), {0, 1}));
    CHECK(table.grad().to_vector() == Values{0, 0, 300, 300, 0, 0});
    // Ops that do not know of it deliver half gradients, which are widened.
    backward(sum(to(w * 2.0, DType::f32), {0, 1}));
    CHECK(w.grad().to_vector() == Values{3 + 0x1p-12, 3 + 0x1p-12});

    // Small steps add up in the masters.
    const NoGrad off;
    for (int i = 0; i < 64; ++i) {
      Tensor master = flat->slice(flat->weights(), 0);
      master.copy_(master + 0x1p-12);
    }
    const auto version = w.version();
    flat->publish();
    CHECK(w.version() > version);
    CHECK(w.to_vector()[1] == 3.015625);
    // A parameter that was written to tells its master; one that was not leaves it as it is.
    w.fill_(0.5);
    flat->collect();
    CHECK(find_tensor(flat->masters(), "w")->tensor.to_vector() == Values{0.5, 0.5});
    flat->slice(flat->weights(), 1).fill_(1 + 0x1p-20);
    flat->publish();
    flat->collect();
    CHECK(find_tensor(flat->masters(), "table")->tensor.to_vector()[0] == 1 + 0x1p-20);
  }
  Tensor f64 = Tensor::from({1}, {1}, DType::f64);
  NORMA_CHECK_ERROR(flatten({{"w", f64}}, DType::bf16), "copies in bf16 need weights of f32");
}

}  // namespace
}  // namespace norma::test
