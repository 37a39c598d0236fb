#include "core/ops/math.h"

#include <cmath>
#include <limits>

#include "core/ops/arithmetic.h"
#include "tests/core/ops/pointwise_reference.h"

namespace norma::test {
namespace {

using Inputs = std::vector<Tensor>;
using Values = std::vector<double>;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

OpCase unary_case(Tensor (*f)(const Tensor&), double (*reference)(double), double low,
                  double high) {
  return {.run = [f](const Inputs& x) { return f(x[0]); },
          .reference = unary_reference(reference),
          .samples = unary_shapes(),
          .low = low,
          .high = high};
}

NORMA_OP_CASE(exp, all) {
  return unary_case(
      exp, [](double v) { return std::exp(v); }, -3.0, 2.0);
}
NORMA_OP_CASE(log, all) {
  OpCase row = unary_case(
      log, [](double v) { return std::log(v); }, 0.2, 4.0);
  row.errors = {{[] { (void)log(Tensor::ones(Shape{2}, DType::i64)); },
                 "log: expected f32 or f64; got i64; convert with to(x, DType::f32)"}};
  return row;
}
NORMA_OP_CASE(sqrt, all) {
  return unary_case(
      sqrt, [](double v) { return std::sqrt(v); }, 0.2, 4.0);
}
NORMA_OP_CASE(rsqrt, all) {
  return unary_case(
      rsqrt, [](double v) { return 1.0 / std::sqrt(v); }, 0.2, 4.0);
}
NORMA_OP_CASE(tanh, all) {
  return unary_case(
      tanh, [](double v) { return std::tanh(v); }, -3.0, 3.0);
}
NORMA_OP_CASE(erf, all) {
  return unary_case(
      erf, [](double v) { return std::erf(v); }, -3.0, 3.0);
}
NORMA_OP_CASE(sigmoid, all) {
  return unary_case(
      sigmoid, [](double v) { return 1.0 / (1.0 + std::exp(-v)); }, -6.0, 6.0);
}
NORMA_OP_CASE(abs, all) {
  return {.run =
              [](const Inputs& x) {
                return abs(x[0] + away_from_zero(x[0].shape(), 1.5, x[0].dtype()));
              },
          .reference =
              [](const Inputs& x) {
                auto y = (x[0] + away_from_zero(x[0].shape(), 1.5, DType::f64)).to_vector();
                for (double& v : y) v = std::abs(v);
                return y;
              },
          .samples = unary_shapes()};
}
NORMA_OP_CASE(square, all) {
  return unary_case(
      square, [](double v) { return v * v; }, -2.0, 2.0);
}
NORMA_OP_CASE(sin, all) {
  return unary_case(
      sin, [](double v) { return std::sin(v); }, -4.0, 4.0);
}
NORMA_OP_CASE(cos, all) {
  return unary_case(
      cos, [](double v) { return std::cos(v); }, -4.0, 4.0);
}

NORMA_OP_CASE(pow, cube) {
  return {.run = [](const Inputs& x) { return pow(x[0], 3.0); },
          .reference = unary_reference([](double v) { return v * v * v; }),
          .samples = unary_shapes(),
          .low = -1.5,
          .high = 1.5};
}
NORMA_OP_CASE(pow, several_exponents) {
  return {
      .run =
          [](const Inputs& x) {
            return pow(x[0], -1.3) + pow(x[0], 2.0) * pow(x[0], 1.0) + pow(x[0], 0.0);
          },
      .reference = unary_reference([](double v) { return std::pow(v, -1.3) + v * v * v + 1.0; }),
      .samples = unary_shapes(),
      .low = 0.4,
      .high = 2.0};
}
NORMA_OP_CASE(pow_tensor, broadcast) {
  return {.run = [](const Inputs& x) { return pow(x[0], x[1]); },
          .reference = binary_reference([](double a, double b) { return std::pow(a, b); }),
          .samples = binary_shapes(),
          .low = 0.4,
          .high = 2.0,
          .errors = {{[] { (void)pow(Tensor::ones(Shape{2}), Tensor::ones(Shape{3})); }, "pow"},
                     {[] { (void)pow(Tensor::ones(Shape{2}), Tensor::ones(Shape{2}, DType::f64)); },
                      "pow: expected operands of one type; got f32 and f64"}}};
}

TEST_CASE("the gradient of a power at zero (pytorch/pytorch#2421)") {
  for (DType dtype : {DType::f32, DType::f64}) {
    const auto slope = [&](double p) {
      return slope_at([p](const Tensor& x) { return pow(x, p); }, {0.0}, dtype)[0];
    };
    CHECK(slope(0.0) == 0.0);
    CHECK(slope(1.0) == 1.0);
    CHECK(slope(2.0) == 0.0);
    CHECK(slope(0.5) == kInf);
    // d/db a^b at a = 0, and d/da there.
    Tensor a = Tensor::from(Shape{4}, {0.0, 0.0, 0.0, 2.0}, dtype);
    Tensor b = Tensor::from(Shape{4}, {1.0, 2.0, 0.0, 0.0}, dtype);
    a.set_requires_grad();
    b.set_requires_grad();
    const Tensor y = pow(a, b);
    CHECK(y.to_vector() == Values{0.0, 0.0, 1.0, 1.0});
    backward(y, Tensor::ones(Shape{4}, dtype));
    CHECK(a.grad().to_vector() == Values{1.0, 0.0, 0.0, 0.0});
    CHECK(compare(b.grad().to_vector(), {0.0, 0.0, 0.0, std::log(2.0)}, 1e-6) == "");
  }
}

TEST_CASE("a square root of zero under a zero gradient stays out of the way") {
  // The gradient of sqrt at 0 is infinite, as in PyTorch; norms have their own op.
  CHECK(slope_at(sqrt, {0.0, 4.0}) == Values{kInf, 0.25});
}

TEST_CASE("sign and the gradient of abs") {
  CHECK(at(sign, {-3.0, 0.0, 5.0, kInf, -kInf}) == Values{-1, 0, 1, 1, -1});
  CHECK(std::isnan(at(sign, {kNan})[0]));
  CHECK(slope_at(abs, {-3.0, 0.0, 5.0}) == Values{-1, 0, 1});
  Tensor x = Tensor::ones(Shape{2});
  x.set_requires_grad();
  CHECK_FALSE(sign(x).requires_grad());
}

// Every function over a fine grid in f32, against <cmath> in f64.
TEST_CASE("vector functions have small relative error over their whole range") {
  struct Row {
    const char* name;
    Tensor (*f)(const Tensor&);
    double (*reference)(double);
    double low, high, tolerance;
  };
  // 6e-8 is half a unit in the last place.
  const Row rows[] = {
      {"exp", exp, [](double v) { return std::exp(v); }, -87.0, 88.7, 1.2e-7},
      {"log", log, [](double v) { return std::log(v); }, 1e-6, 100.0, 2e-7},
      {"log near 1", log, [](double v) { return std::log(v); }, 0.9, 1.1, 2e-7},
      {"tanh", tanh, [](double v) { return std::tanh(v); }, -12.0, 12.0, 2.5e-7},
      {"tanh near 0", tanh, [](double v) { return std::tanh(v); }, -0.7, 0.7, 2.5e-7},
      {"erf", erf, [](double v) { return std::erf(v); }, -5.0, 5.0, 2.5e-7},
      {"sigmoid", sigmoid, [](double v) { return 1.0 / (1.0 + std::exp(-v)); }, -87.0, 87.0, 3e-7},
      {"rsqrt", rsqrt, [](double v) { return 1.0 / std::sqrt(v); }, 1e-6, 1e6, 2e-7},
  };
  constexpr std::int64_t kPoints = 200003;
  for (const Row& row : rows) {
    INFO(row.name);
    Tensor x = Tensor::empty(Shape{kPoints});
    float* p = x.mutable_data<float>();
    for (std::int64_t i = 0; i < kPoints; ++i) {
      p[i] = static_cast<float>(row.low + (row.high - row.low) * static_cast<double>(i) /
                                              static_cast<double>(kPoints - 1));
    }
    const Tensor y = row.f(x);
    double worst = 0;
    for (std::int64_t i = 0; i < kPoints; ++i) {
      const double expected = row.reference(static_cast<double>(p[i]));
      if (std::abs(expected) < 1e-37) continue;
      const double error =
          std::abs(static_cast<double>(y.data<float>()[i]) - expected) / std::abs(expected);
      worst = std::max(worst, error);
    }
    CHECK(worst < row.tolerance);
    CHECK(worst > 0.0);
  }
}

TEST_CASE("functions at infinities, zeros and NaN") {
  for (DType dtype : {DType::f32, DType::f64}) {
    INFO(name_of(dtype));
    const auto check = [&](Tensor (*f)(const Tensor&), const Values& expected) {
      const Values y = at(f, {kInf, -kInf, 0.0, kNan}, dtype);
      for (std::size_t i = 0; i < 3; ++i) {
        CHECK((y[i] == expected[i] || (std::isnan(y[i]) && std::isnan(expected[i]))));
      }
      CHECK(std::isnan(y[3]));
    };
    check(exp, {kInf, 0.0, 1.0});
    check(log, {kInf, kNan, -kInf});
    check(sqrt, {kInf, kNan, 0.0});
    check(rsqrt, {0.0, kNan, kInf});
    check(tanh, {1.0, -1.0, 0.0});
    check(erf, {1.0, -1.0, 0.0});
    check(sigmoid, {1.0, 0.0, 0.5});
    check(abs, {kInf, kInf, 0.0});
    check(square, {kInf, kInf, 0.0});
    CHECK(std::isnan(at(log, {-1.0}, dtype)[0]));
  }
  // Overflow, and a subnormal result.
  CHECK(at(exp, {89.0, -106.0}) == Values{kInf, 0.0});
  CHECK(near_relative(at(exp, {-100.0})[0], std::exp(-100.0), 0.02));
}

TEST_CASE("half types pass through the functions") {
  Tensor x = Tensor::from(Shape{3}, {0.5, -1.0, 2.0}, DType::bf16);
  x.set_requires_grad();
  const Tensor y = tanh(x);
  REQUIRE(y.dtype() == DType::bf16);
  CHECK(compare(y.to_vector(), {std::tanh(0.5), std::tanh(-1.0), std::tanh(2.0)}, 4e-3) == "");
  backward(y, Tensor::ones(Shape{3}, DType::bf16));
  CHECK(x.grad().dtype() == DType::bf16);
  CHECK(compare(x.grad().to_vector(), {0.786448, 0.419974, 0.070651}, 4e-3) == "");
}

}  // namespace
}  // namespace norma::test
