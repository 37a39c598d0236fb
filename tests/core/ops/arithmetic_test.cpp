#include "core/ops/arithmetic.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/ops/broadcast.h"
#include "tests/core/ops/pointwise_reference.h"

namespace norma::test {
namespace {

using Inputs = std::vector<Tensor>;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

OpError shapes_do_not_fit(Tensor (*f)(const Tensor&, const Tensor&), const std::string& name) {
  return {[f] { (void)f(Tensor::zeros(Shape{2, 3}), Tensor::zeros(Shape{2, 4})); }, name};
}
OpError types_differ(Tensor (*f)(const Tensor&, const Tensor&), const std::string& name) {
  return {[f] { (void)f(Tensor::zeros(Shape{2}), Tensor::zeros(Shape{2}, DType::f64)); },
          name + ": expected operands of one type; got f32 and f64"};
}

NORMA_OP_CASE(add, broadcast) {
  return {.run = [](const Inputs& x) { return x[0] + x[1]; },
          .reference = binary_reference([](double a, double b) { return a + b; }),
          .samples = binary_shapes(),
          .errors = {shapes_do_not_fit(add, "add"), types_differ(add, "add")}};
}

NORMA_OP_CASE(sub, broadcast) {
  return {.run = [](const Inputs& x) { return x[0] - x[1]; },
          .reference = binary_reference([](double a, double b) { return a - b; }),
          .samples = binary_shapes(),
          .errors = {shapes_do_not_fit(sub, "sub"), types_differ(sub, "sub")}};
}

NORMA_OP_CASE(mul, broadcast) {
  return {.run = [](const Inputs& x) { return x[0] * x[1]; },
          .reference = binary_reference([](double a, double b) { return a * b; }),
          .samples = binary_shapes(),
          .errors = {shapes_do_not_fit(mul, "mul"), types_differ(mul, "mul")}};
}

NORMA_OP_CASE(div, broadcast) {
  return {.run = [](const Inputs& x) { return x[0] / x[1]; },
          .reference = binary_reference([](double a, double b) { return a / b; }),
          .samples = binary_shapes(),
          .low = 0.5,
          .high = 2.0,
          .errors = {shapes_do_not_fit(div, "div"), types_differ(div, "div")}};
}

NORMA_OP_CASE(neg, all) {
  return {.run = [](const Inputs& x) { return -x[0]; },
          .reference = unary_reference([](double v) { return -v; }),
          .samples = unary_shapes()};
}

NORMA_OP_CASE(add_scalar, all) {
  return {.run = [](const Inputs& x) { return 1.5 - (x[0] + 0.25 - 2.0); },
          .reference = unary_reference([](double v) { return 1.5 - (v + 0.25 - 2.0); }),
          .samples = unary_shapes()};
}

NORMA_OP_CASE(mul_scalar, all) {
  return {.run = [](const Inputs& x) { return 3.0 * x[0] * -0.3; },
          .reference = unary_reference([](double v) { return -0.9 * v; }),
          .samples = unary_shapes()};
}

NORMA_OP_CASE(div, scalar) {
  return {.run = [](const Inputs& x) { return 2.0 / (x[0] / 3.0); },
          .reference = unary_reference([](double v) { return 6.0 / v; }),
          .samples = unary_shapes(),
          .low = 0.5,
          .high = 2.0};
}

OpCase extremum_case(const std::string& name, Tensor (*f)(const Tensor&, const Tensor&),
                     double (*reference)(double, double)) {
  // The operands differ by at least one half.
  const auto shifted = [](const Inputs& x) {
    const Shape out = broadcast_shapes("test", x[0].shape(), x[1].shape());
    return Inputs{x[0] + away_from_zero(out, 2.5, x[0].dtype()), x[1]};
  };
  return {.run = [=](const Inputs& x) { return f(shifted(x)[0], x[1]); },
          .reference = [=](const Inputs& x) { return binary_reference(reference)(shifted(x)); },
          .samples = binary_shapes(),
          .errors = {shapes_do_not_fit(f, name), types_differ(f, name)}};
}

NORMA_OP_CASE(maximum, broadcast) {
  return extremum_case("maximum", maximum, [](double a, double b) { return std::max(a, b); });
}

NORMA_OP_CASE(minimum, broadcast) {
  return extremum_case("minimum", minimum, [](double a, double b) { return std::min(a, b); });
}

// A condition with both values in every row and column.
Tensor stripes(const Shape& shape) {
  Tensor c = Tensor::empty(shape, DType::u8);
  for (std::int64_t i = 0; i < c.numel(); ++i) {
    c.mutable_data<std::uint8_t>()[i] = i % 3 == 0 ? 1 : 0;
  }
  return c;
}

NORMA_OP_CASE(where, broadcast) {
  return {.run =
              [](const Inputs& x) {
                return where(stripes(broadcast_shapes("test", x[0].shape(), x[1].shape())), x[0],
                             x[1]);
              },
          .reference =
              [](const Inputs& x) {
                const Shape out = broadcast_shapes("test", x[0].shape(), x[1].shape());
                std::vector<double> y = broadcast_values(x[0], out);
                const std::vector<double> b = broadcast_values(x[1], out);
                for (std::size_t i = 0; i < y.size(); ++i) y[i] = i % 3 == 0 ? y[i] : b[i];
                return y;
              },
          .samples = binary_shapes(),
          .errors = {{[] {
                        (void)where(Tensor::zeros(Shape{2}), Tensor::zeros(Shape{2}),
                                    Tensor::zeros(Shape{2}));
                      },
                      "where: expected a condition of type u8; got f32; use a comparison"},
                     {[] {
                        (void)where(Tensor::zeros(Shape{2}, DType::u8), Tensor::zeros(Shape{2}),
                                    Tensor::zeros(Shape{2}, DType::f64));
                      },
                      "where: expected operands of one floating type; got f32 and f64"}}};
}

NORMA_OP_CASE(where, condition_repeats) {
  return {.run =
              [](const Inputs& x) {
                return where(stripes(Shape{4, 1}), x[0], x[1]);
              },
          .reference =
              [](const Inputs& x) {
                std::vector<double> y = x[0].to_vector();
                const std::vector<double> b = broadcast_values(x[1], Shape{4, 9});
                for (std::size_t i = 9; i < 27; ++i) y[i] = b[i];
                return y;
              },
          .samples = {{Shape{4, 9}, Shape{9}}, {Shape{4, 9}, Shape{}}}};
}

NORMA_OP_CASE(sum_to, all) {
  return {.run = [](const Inputs& x) { return sum_to(x[0], x[1].shape()) * x[1]; },
          .reference =
              [](const Inputs& x) {
                std::vector<double> y(static_cast<std::size_t>(x[1].numel()));
                std::vector<double> index(y.size());
                for (std::size_t i = 0; i < y.size(); ++i) index[i] = static_cast<double>(i);
                const auto to =
                    broadcast_values(Tensor::from(x[1].shape(), index, DType::f64), x[0].shape());
                const auto values = x[0].to_vector();
                for (std::size_t i = 0; i < values.size(); ++i) {
                  y[static_cast<std::size_t>(to[i])] += values[i];
                }
                const auto factor = x[1].to_vector();
                for (std::size_t i = 0; i < y.size(); ++i) y[i] *= factor[i];
                return y;
              },
          .samples = {{Shape{3, 5}, Shape{}},
                      {Shape{3, 5}, Shape{5}},
                      {Shape{3, 5}, Shape{3, 1}},
                      {Shape{70, 33}, Shape{33}},
                      {Shape{70, 100}, Shape{1, 100}},
                      {Shape{2, 3, 4, 5}, Shape{3, 1, 5}},
                      {Shape{2, 3, 4, 5}, Shape{2, 1, 4, 1}},
                      {Shape{5, 1, 7}, Shape{1, 1}},
                      {Shape{0, 3}, Shape{3}},
                      {Shape{1000, 129}, Shape{129}},
                      {Shape{70001}, Shape{1}}},
          .tolerance_f32 = 1e-5,
          .errors = {{[] {
                        (void)sum_to(Tensor::zeros(Shape{2, 3}), Shape{2});
                      },
                      "sum_to"},
                     {[] {
                        (void)sum_to(Tensor::zeros(Shape{1, 3}), Shape{2, 3});
                      },
                      "sum_to: expected a shape that broadcasts to (1, 3); got (2, 3)"}}};
}

NORMA_OP_CASE(broadcast_to, all) {
  return {.run = [](const Inputs& x) { return broadcast_to(x[0], x[1].shape()) * x[1]; },
          .reference =
              [](const Inputs& x) {
                auto y = broadcast_values(x[0], x[1].shape());
                const auto factor = x[1].to_vector();
                for (std::size_t i = 0; i < y.size(); ++i) y[i] *= factor[i];
                return y;
              },
          .samples = {{Shape{}, Shape{3, 5}},
                      {Shape{5}, Shape{3, 5}},
                      {Shape{3, 1}, Shape{3, 5}},
                      {Shape{3, 1, 5}, Shape{2, 3, 4, 5}},
                      {Shape{1}, Shape{0}},
                      {Shape{300, 1}, Shape{300, 129}}},
          .errors = {{[] {
                        (void)broadcast_to(Tensor::zeros(Shape{2, 3}), Shape{3});
                      },
                      "broadcast_to: expected axes of size 1 where the sizes differ; got (2, 3) "
                      "for (3)"}}};
}

TEST_CASE(
    "maximum and minimum share the gradient of a tie, and pass NaN on (pytorch/pytorch#56734)") {
  for (auto* f : {maximum, minimum}) {
    Tensor a = Tensor::from(Shape{3}, {2.0, 2.0, 5.0});
    Tensor b = Tensor::from(Shape{3}, {2.0, 3.0, 4.0});
    a.set_requires_grad();
    b.set_requires_grad();
    backward(f(a, b), Tensor::ones(Shape{3}));
    const double first = f == maximum ? 0.0 : 1.0;
    CHECK(a.grad().to_vector() == std::vector<double>{0.5, first, 1.0 - first});
    CHECK(b.grad().to_vector() == std::vector<double>{0.5, 1.0 - first, first});
    for (DType dtype : {DType::f32, DType::f64}) {
      const Tensor x = Tensor::from(Shape{2}, {kNan, 1.0}, dtype);
      const Tensor y = Tensor::from(Shape{2}, {1.0, kNan}, dtype);
      for (double v : f(x, y).to_vector()) CHECK(std::isnan(v));
    }
  }
}

TEST_CASE("where keeps the gradient of what was not chosen at zero, also beside infinities") {
  Tensor x = Tensor::from(Shape{2}, {0.0, 4.0}, DType::f64);
  x.set_requires_grad();
  const Tensor positive = Tensor::from(Shape{2}, {0.0, 1.0}, DType::u8);
  const Tensor y = where(positive, 1.0 / x, Tensor::scalar(-kInf, DType::f64));
  CHECK(y.to_vector() == std::vector<double>{-kInf, 0.25});
  const Tensor z = where(positive, x, Tensor::from(Shape{2}, {kNan, kInf}, DType::f64));
  backward(z, Tensor::ones(Shape{2}, DType::f64));
  CHECK(x.grad().to_vector() == std::vector<double>{0.0, 1.0});
}

TEST_CASE("an operand that stands twice gets both gradients") {
  Tensor x = Tensor::from(Shape{3}, {1.0, 2.0, 3.0}, DType::f64);
  x.set_requires_grad();
  backward(x * x + x - x / x, Tensor::ones(Shape{3}, DType::f64));
  CHECK(compare(x.grad().to_vector(), {3.0, 5.0, 7.0}, 1e-15) == "");
}

TEST_CASE("half types are computed in f32 and rounded once") {
  for (DType dtype : {DType::bf16, DType::f16}) {
    Tensor a = Tensor::from(Shape{3}, {1.0, 3.0, -2.5}, dtype);
    Tensor b = Tensor::from(Shape{1}, {3.0}, dtype);
    a.set_requires_grad();
    b.set_requires_grad();
    const Tensor y = a / b;
    REQUIRE(y.dtype() == dtype);
    const Tensor expected = Tensor::from(Shape{3}, {1.0f / 3.0f, 1.0, -2.5f / 3.0f}, dtype);
    CHECK(y.to_vector() == expected.to_vector());
    backward(y, Tensor::ones(Shape{3}, dtype));
    CHECK(a.grad().dtype() == dtype);
    // -(1 + 3 - 2.5) / 9
    CHECK(compare(b.grad().to_vector(), {-1.5 / 9.0}, 4e-3) == "");
  }
}

TEST_CASE("sum_to keeps small terms beside many others") {
  // 2^25 + 2^20 ones would stay at 2^25 if they were added one by one in f32. Up to 32 ones are
  // added to the large term before the sum goes to f64.
  const std::int64_t n = 1 << 20;
  Tensor x = Tensor::ones(Shape{n + 1});
  x.mutable_data<float>()[0] = 0x1p25f;
  CHECK(std::abs(sum_to(x, Shape{}).item() - 0x1p25 - static_cast<double>(n)) <= 32.0);
  Tensor columns = Tensor::ones(Shape{n + 1, 2});
  columns.mutable_data<float>()[0] = 0x1p25f;
  CHECK(compare(sum_to(columns, Shape{2}).to_vector(),
                {0x1p25 + static_cast<double>(n), static_cast<double>(n) + 1.0}, 1e-6) == "");
}

}  // namespace
}  // namespace norma::test
