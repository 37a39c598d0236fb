#include "core/ops/dropout.h"

#include <cmath>
#include <limits>
#include <set>

#include "core/kernels/dropout.h"
#include "core/ops/arithmetic.h"
#include "tests/core/ops/pointwise_reference.h"

namespace norma::test {
namespace {

const RandomKey kKey = random_key(7, "dropout/test");

NORMA_OP_CASE(dropout, by_the_words_of_the_stream) {
  return {.run = [](const std::vector<Tensor>& x) { return dropout(x[0], 0.3, kKey); },
          .reference =
              [](const std::vector<Tensor>& x) {
                auto y = x[0].to_vector();
                for (std::size_t i = 0; i < y.size(); ++i) {
                  const double u = random_block(kKey, i / 4)[i % 4] * 0x1p-32;
                  y[i] = u < 0.3 ? 0.0 : y[i] / 0.7;
                }
                return y;
              },
          .samples = unary_shapes(),
          .errors = {{[] { (void)dropout(Tensor::zeros(Shape{2}), 1.5, kKey); },
                      "dropout: p must lie within [0, 1]; got 1.5"},
                     {[] { (void)dropout(Tensor::zeros(Shape{2}), -0.1, kKey); },
                      "dropout: p must lie within [0, 1]; got -0.1"},
                     {[] {
                        (void)dropout(Tensor::zeros(Shape{2}),
                                      std::numeric_limits<double>::quiet_NaN(), kKey);
                      },
                      "dropout: p must lie within [0, 1]; got nan"}}};
}

TEST_CASE("blocks in vectors are the blocks of the stream") {
  for (std::uint64_t first :
       {std::uint64_t{0}, std::uint64_t{0xfffffffe}, ~std::uint64_t{0} - 200}) {
    std::vector<std::uint32_t> words(4 * 151);
    kernels::random_blocks(kKey, first, 151, words.data());
    for (std::size_t b = 0; b < 151; ++b) {
      const auto block = random_block(kKey, first + b);
      for (std::size_t k = 0; k < 4; ++k) REQUIRE(words[4 * b + k] == block[k]);
    }
  }
}

TEST_CASE("dropout of ones gives 0 or 1 / (1 - p), with mean 1 (pytorch/pytorch#1833)") {
  const Tensor y = dropout(Tensor::ones(Shape{1000000}), 0.3, kKey);
  const auto values = y.to_vector();
  double sum = 0;
  for (double v : values) sum += v;
  CHECK(std::abs(sum / 1e6 - 1.0) < 0.003);
  const std::set<double> distinct(values.begin(), values.end());
  CHECK(distinct == std::set<double>{0.0, static_cast<double>(static_cast<float>(1.0 / 0.7))});
}

TEST_CASE("dropout at the ends of p (pytorch/pytorch#1833)") {
  Tensor x = Tensor::from(Shape{4}, {1.0, -2.0, std::numeric_limits<double>::infinity(), 3.0});
  x.set_requires_grad();
  CHECK(dropout(x, 0.0, kKey).same(x));
  const Tensor y = dropout(x, 1.0, kKey);
  CHECK(y.to_vector() == std::vector<double>(4, 0.0));
  backward(y, Tensor::ones(Shape{4}));
  CHECK(x.grad().to_vector() == std::vector<double>(4, 0.0));
  for (double v : dropout(x, 0.9999999, kKey).to_vector()) CHECK_FALSE(std::isnan(v));
}

TEST_CASE(
    "dropout's gradient uses the very same mask in every sample and channel "
    "(tiny-dnn/tiny-dnn#723)") {
  const Shape shape{4, 3, 5, 5};
  Tensor x = Tensor::ones(shape);
  x.set_requires_grad();
  const Tensor first = dropout(x, 0.5, random_key(7, "dropout/first"));
  const Tensor second = dropout(x, 0.5, random_key(7, "dropout/second"));
  CHECK(first.to_vector() != second.to_vector());
  backward(first, Tensor::ones(shape));
  const auto y = first.to_vector();
  const auto dx = x.grad().to_vector();
  for (std::size_t i = 0; i < y.size(); ++i) CHECK(dx[i] == (y[i] != 0.0 ? 2.0 : 0.0));
  for (std::size_t plane = 0; plane < 12; ++plane) {
    double sum = 0;
    for (std::size_t i = 0; i < 25; ++i) sum += dx[plane * 25 + i];
    CHECK(sum > 0.0);
  }
  // The later call has not taken the place of the first one's mask.
  x.clear_grad();
  backward(second, Tensor::ones(shape));
  CHECK(x.grad().to_vector() == second.to_vector());
}

TEST_CASE("the mask is the same in every type") {
  const Tensor x = Tensor::ones(Shape{999}, DType::f64);
  const auto mask = [&](DType dtype) {
    auto y = dropout(Tensor::ones(Shape{999}, dtype), 0.4, kKey).to_vector();
    for (double& v : y) v = v != 0.0 ? 1.0 : 0.0;
    return y;
  };
  for (DType dtype : {DType::f32, DType::bf16, DType::f16}) CHECK(mask(dtype) == mask(DType::f64));
}

}  // namespace
}  // namespace norma::test
