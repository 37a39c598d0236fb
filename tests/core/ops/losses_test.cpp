#include "core/ops/losses.h"

#include <cmath>
#include <limits>

#include "core/ops/arithmetic.h"
#include "tests/support/op_case.h"

namespace norma::test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

using Loss = Tensor (*)(const Tensor&, const Tensor&);

template <class F>
OpCase loss_case(Loss loss, F f) {
  return {.run = [=](const auto& in) { return loss(in[0], in[1]); },
          .reference =
              [=](const auto& in) {
                const auto x = in[0].to_vector(), t = in[1].to_vector();
                double sum = 0;
                for (std::size_t i = 0; i < x.size(); ++i) sum += f(x[i], t[i]);
                return std::vector<double>{sum / static_cast<double>(x.size())};
              },
          .samples = {{{3, 4}, {3, 4}}, {{1}, {1}}, {{2, 3, 17}, {2, 3, 17}}, {{40000}, {40000}}},
          .low = -3,
          .high = 3,
          .errors = {{[=] {
                        (void)loss(Tensor::zeros({2, 3}), Tensor::zeros({3}));
                      },
                      "_loss: expected targets of f32 with the predictions' shape (2, 3); got f32 "
                      "of (3)"},
                     {[=] { (void)loss(Tensor::zeros({2}), Tensor::zeros({2}, DType::f64)); },
                      "got f64 of (2)"},
                     {[=] { (void)loss(Tensor::zeros({0}), Tensor::zeros({0})); },
                      "_loss: expected at least one element; got shape (0)"}}};
}

double huber(double d, double delta) {
  const double a = std::abs(d);
  return a <= delta ? 0.5 * d * d : delta * (a - 0.5 * delta);
}

NORMA_OP_CASE(mse_loss, mean) {
  return loss_case(mse_loss, [](double x, double t) { return (x - t) * (x - t); });
}
NORMA_OP_CASE(mae_loss, mean) {
  return loss_case(mae_loss, [](double x, double t) { return std::abs(x - t); });
}
NORMA_OP_CASE(huber_loss, one) {
  OpCase c = loss_case([](const Tensor& x, const Tensor& t) { return huber_loss(x, t); },
                       [](double x, double t) { return huber(x - t, 1.0); });
  c.errors.push_back(
      {[] { (void)huber_loss(Tensor::zeros({2}), Tensor::zeros({2}), {.delta = 0}); },
       "huber_loss: expected delta above 0; got 0"});
  return c;
}
NORMA_OP_CASE(huber_loss, wide) {
  return loss_case(
      [](const Tensor& x, const Tensor& t) { return huber_loss(x, t, {.delta = 2.5}); },
      [](double x, double t) { return huber(x - t, 2.5); });
}
NORMA_OP_CASE(bce_loss, mean) {
  return loss_case(bce_loss, [](double x, double t) { return std::log1p(std::exp(x)) - x * t; });
}

// Golden values: torch 2.13.0, F.mse_loss and so on; huber_loss with delta 1 and 2.5.
TEST_CASE("losses: as torch, values and gradients") {
  struct Row {
    Tensor (*loss)(const Tensor&, const Tensor&);
    double value;
    std::vector<double> gradient;
  };
  const std::vector<Row> rows = {
      {mse_loss, 3.3125, {-0.25, -1.0, 1.5, 0.0}},
      {mae_loss, 1.375, {-0.25, -0.25, 0.25, 0.0}},
      {[](const Tensor& x, const Tensor& t) { return huber_loss(x, t); },
       1.03125,
       {-0.125, -0.25, 0.25, 0.0}},
      {[](const Tensor& x, const Tensor& t) { return huber_loss(x, t, {.delta = 2.5}); },
       1.625,
       {-0.125, -0.5, 0.625, 0.0}},
      {bce_loss,
       1.5613913634414442,
       {-0.09438516719953635, -0.07939361904841091, 0.47019926949447055, 0.125}}};
  const Tensor t = Tensor::from({4}, {1, 0.5, -1, 0}, DType::f64);
  for (const Row& row : rows) {
    Tensor x = Tensor::from({4}, {0.5, -1.5, 2, 0}, DType::f64).set_requires_grad();
    const Tensor y = row.loss(x, t);
    CHECK(compare(y.to_vector(), {row.value}, 1e-14) == "");
    // By the kernel, and by `composed`.
    CHECK(compare(grad(y, {x}, {.retain_graph = true})[0].to_vector(), row.gradient, 1e-14) == "");
    CHECK(compare(grad(y, {x}, {.create_graph = true})[0].to_vector(), row.gradient, 1e-14) == "");
  }
}

TEST_CASE("losses: the same tensor on both sides, and a target that wants a gradient") {
  Tensor x = Tensor::from({2}, {1, 2}).set_requires_grad();
  mse_loss(x, x).backward();
  CHECK(x.grad().to_vector() == std::vector<double>{0, 0});
  Tensor a = Tensor::from({2}, {1, 2}).set_requires_grad();
  Tensor b = Tensor::from({2}, {3, 2}).set_requires_grad();
  for (int pass = 1; pass <= 2; ++pass) {
    mse_loss(a, b).backward();
    CHECK(a.grad().to_vector() == std::vector<double>{-2.0 * pass, 0});
    CHECK(b.grad().to_vector() == std::vector<double>{2.0 * pass, 0});
  }
}

TEST_CASE("losses: extreme values stay finite or show themselves") {
  const auto bce = [](double x, double t) {
    return bce_loss(Tensor::from({1}, {x}), Tensor::from({1}, {t})).item();
  };
  CHECK(bce(1e4, 1) == 0);
  CHECK(bce(1e4, 0) == 10000);
  CHECK(bce(-1e4, 1) == 10000);
  CHECK(bce(-200, 0) == 0);
  for (double bad : {kInf, std::numeric_limits<double>::quiet_NaN()}) {
    for (Loss loss : {mse_loss, mae_loss, bce_loss}) {
      Tensor x = Tensor::from({2}, {bad, 1}).set_requires_grad();
      CHECK_FALSE(std::isfinite(loss(x, Tensor::zeros({2})).item()));
    }
  }
  // A mean of many: an f32 sum would stop at 2^24.
  CHECK(mse_loss(Tensor::ones({20000000}), Tensor::zeros({20000000})).item() == 1.0);
}

TEST_CASE("losses: half types are computed in f32") {
  Tensor x = Tensor::from({2}, {1, 3}, DType::bf16).set_requires_grad();
  const Tensor y = mse_loss(x, Tensor::zeros({2}, DType::bf16));
  CHECK(y.item() == 5);
  CHECK(y.dtype() == DType::bf16);
  y.backward();
  CHECK(x.grad().to_vector() == std::vector<double>{1, 3});
}

}  // namespace
}  // namespace norma::test
