#include "core/ops/cast.h"

#include <cmath>
#include <limits>

#include "core/ops/arithmetic.h"
#include "tests/core/ops/pointwise_reference.h"

namespace norma::test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
using Values = std::vector<double>;

NORMA_OP_CASE(cast, there_and_back) {
  // Through f64, which loses nothing, and scaled so that the gradient is not one.
  return {.run =
              [](const std::vector<Tensor>& x) {
                const DType own = x[0].dtype();
                return to(to(x[0], DType::f64) * to(x[0], DType::f64), own);
              },
          .reference = unary_reference([](double v) { return v * v; }),
          .samples = unary_shapes()};
}

TEST_CASE("the gradient of a cast has the type of its input") {
  for (DType from : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
    for (DType into : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
      Tensor x = Tensor::from(Shape{3}, {1.0, -2.0, 0.5}, from);
      x.set_requires_grad();
      const Tensor y = to(x, into);
      CHECK(y.dtype() == into);
      CHECK(y.to_vector() == x.to_vector());
      backward(y * 3.0, Tensor::ones(Shape{3}, into));
      CHECK(x.grad().dtype() == from);
      CHECK(x.grad().to_vector() == Values{3.0, 3.0, 3.0});
    }
  }
}

TEST_CASE("a cast to the same type is the tensor itself") {
  const Tensor x = Tensor::ones(Shape{2});
  CHECK(to(x, DType::f32).same(x));
}

TEST_CASE("casts to half types round to nearest, ties to even") {
  // bf16 has 8 significant bits: 1 + 2^-8 is half way and goes to 1, 1 + 3 2^-8 to 1 + 2^-6.
  const Tensor x = Tensor::from(Shape{6}, {1 + 0x1p-8, 1 + 0x3p-8, 3.4e38, kInf, -kInf, kNan});
  const Values y = to(x, DType::bf16).to_vector();
  CHECK(y[0] == 1.0);
  CHECK(y[1] == 1 + 0x1p-6);
  CHECK(y[2] == kInf);  // above the largest bf16 by more than half a step
  CHECK(y[3] == kInf);
  CHECK(y[4] == -kInf);
  CHECK(std::isnan(y[5]));
  // f16 has 11: ties at 2^-11; 65519 is the last that stays finite; 2^-24 is the least subnormal.
  const Tensor h = Tensor::from(Shape{5}, {1 + 0x1p-11, 65519.0, 65520.0, 0x1p-24, 0x1p-26});
  CHECK(to(h, DType::f16).to_vector() == Values{1.0, 65504.0, kInf, 0x1p-24, 0.0});
}

TEST_CASE("casts of many elements agree with casts of one") {
  const Tensor x = random_tensor(Shape{40001}, 5, DType::f32, -70000.0, 70000.0);
  const float* p = x.data<float>();
  const Tensor b = to(x, DType::bf16);
  const Tensor h = to(x, DType::f16);
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    REQUIRE(b.data<bf16>()[i].bits == bf16(p[i]).bits);
    REQUIRE(h.data<f16>()[i].bits == f16(p[i]).bits);
  }
}

TEST_CASE("every half value survives the way through f32") {
  constexpr std::int64_t kValues = 65536;
  Tensor b = Tensor::empty(Shape{kValues}, DType::bf16);
  Tensor h = Tensor::empty(Shape{kValues}, DType::f16);
  for (std::int64_t i = 0; i < kValues; ++i) {
    b.mutable_data<bf16>()[i].bits = static_cast<std::uint16_t>(i);
    h.mutable_data<f16>()[i].bits = static_cast<std::uint16_t>(i);
  }
  const Tensor b32 = to(b, DType::f32);
  const Tensor h32 = to(h, DType::f32);
  const Tensor b_back = to(b32, DType::bf16);
  const Tensor h_back = to(h32, DType::f16);
  for (std::int64_t i = 0; i < kValues; ++i) {
    INFO(i);
    const float x = b32.data<float>()[i];
    const float y = h32.data<float>()[i];
    const auto one_b = static_cast<float>(b.data<bf16>()[i]);
    const auto one_h = static_cast<float>(h.data<f16>()[i]);
    REQUIRE((x == one_b || (std::isnan(x) && std::isnan(one_b))));
    REQUIRE((y == one_h || (std::isnan(y) && std::isnan(one_h))));
    if (!std::isnan(x)) REQUIRE(b_back.data<bf16>()[i].bits == i);
    if (!std::isnan(y)) REQUIRE(h_back.data<f16>()[i].bits == i);
    if (std::isnan(x)) REQUIRE(std::isnan(static_cast<float>(b_back.data<bf16>()[i])));
    if (std::isnan(y)) REQUIRE(std::isnan(static_cast<float>(h_back.data<f16>()[i])));
  }
}

TEST_CASE("casts to integers cut towards zero and saturate") {
  const Tensor x = Tensor::from(Shape{7}, {2.9, -2.9, 300.0, 1e30, -1e30, kNan, -kInf});
  constexpr double kMax32 = 2147483647.0, kMin32 = -2147483648.0;
  CHECK(to(x, DType::i32).to_vector() == Values{2, -2, 300, kMax32, kMin32, 0, kMin32});
  CHECK(to(x, DType::u8).to_vector() == Values{2, 0, 255, 255, 0, 0, 0});
  const auto ids = to(x, DType::i64).to_ids();
  CHECK(ids[3] == std::numeric_limits<std::int64_t>::max());
  CHECK(ids[4] == std::numeric_limits<std::int64_t>::min());
}

TEST_CASE("a cast to an integer type records nothing") {
  Tensor x = Tensor::from(Shape{2}, {1.5, 2.5});
  x.set_requires_grad();
  CHECK_FALSE(to(x, DType::i64).requires_grad());
  CHECK_FALSE(to(to(x, DType::i64), DType::f32).requires_grad());
}

}  // namespace
}  // namespace norma::test
