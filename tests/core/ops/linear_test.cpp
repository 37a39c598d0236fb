#include "core/ops/linear.h"

#include <cmath>

#include "core/ops/cast.h"
#include "tests/support/op_case.h"

namespace norma::test {
namespace {

double apply(FusedActivation f, double z) {
  switch (f) {
    case FusedActivation::relu:
      return z > 0 ? z : 0;
    case FusedActivation::gelu:
      return 0.5 * z * (1 + std::erf(z / std::sqrt(2.0)));
    case FusedActivation::gelu_tanh:
      return 0.5 * z *
             (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (z + 0.044715 * z * z * z)));
    case FusedActivation::silu:
      return z / (1 + std::exp(-z));
    case FusedActivation::none:
      break;
  }
  return z;
}

OpCase row(FusedActivation f) {
  OpCase c;
  c.run = [=](const std::vector<Tensor>& x) {
    return linear(x[0], x[1], x.size() > 2 ? x[2] : Tensor(), {.activation = f});
  };
  c.reference = [=](const std::vector<Tensor>& x) {
    const std::int64_t in = x[1].size(1), out = x[1].size(0);
    const std::int64_t rows = x[0].shape().numel(0, x[0].rank() - 1);
    const auto v = x[0].to_vector(), w = x[1].to_vector();
    const auto b =
        x.size() > 2 ? x[2].to_vector() : std::vector<double>(static_cast<std::size_t>(out), 0.0);
    std::vector<double> y;
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < out; ++j) {
        double z = b[static_cast<std::size_t>(j)];
        for (std::int64_t k = 0; k < in; ++k) {
          z += v[static_cast<std::size_t>(i * in + k)] * w[static_cast<std::size_t>(j * in + k)];
        }
        y.push_back(apply(f, z));
      }
    }
    return y;
  };
  c.samples = {{{3, 4}, {5, 4}, {5}}, {{3, 4}, {5, 4}},           {{2, 3, 7}, {33, 7}, {33}},
               {{5}, {2, 5}, {2}},    {{17, 31}, {15, 31}, {15}}, {{1, 1}, {1, 1}, {1}}};
  c.tolerance_f32 = 1e-5;
  return c;
}

NORMA_OP_CASE(linear, plain) {
  OpCase c = row(FusedActivation::none);
  c.samples.push_back({{0, 4}, {5, 4}, {5}});
  c.samples.push_back({{2, 0}, {3, 0}, {3}});
  const Tensor x = Tensor::ones({2, 3}), w = Tensor::ones({4, 3});
  c.errors = {
      {[=] {
         (void)linear(x, Tensor::ones({4, 5}));
       },
       "linear: weight must have shape (out, 3), for the last axis of x (2, 3); got (4, 5)"},
      {[=] { (void)linear(x, w, Tensor::ones({3})); },
       "linear: bias must have shape (4), for weight (4, 3); got (3)"},
      {[=] {
         (void)linear(x, w, Tensor::ones({1, 4}));
       },
       "linear: bias must have shape (4), for weight (4, 3); got (1, 4)"},
      {[=] {
         (void)linear(x, Tensor::ones({4, 3}, DType::f64));
       },
       "linear: x, weight and bias must have one floating type; got f32, f64 and no bias"},
      {[=] { (void)linear(Tensor::scalar(1), w); }, "linear: x must have at least one axis"},
  };
  return c;
}
NORMA_OP_CASE(linear, relu) { return row(FusedActivation::relu); }
NORMA_OP_CASE(linear, gelu) { return row(FusedActivation::gelu); }
NORMA_OP_CASE(linear, gelu_tanh) { return row(FusedActivation::gelu_tanh); }
NORMA_OP_CASE(linear, silu) { return row(FusedActivation::silu); }

TEST_CASE("linear on zero rows gives an empty result and zero parameter gradients") {
  Tensor x = Tensor::ones({0, 3}), w = Tensor::ones({2, 3}), b = Tensor::ones({2});
  for (Tensor* t : {&x, &w, &b}) t->set_requires_grad();
  const Tensor y = linear(x, w, b, {.activation = FusedActivation::gelu});
  CHECK(y.shape() == Shape{0, 2});
  backward(y, Tensor::ones({0, 2}));
  CHECK(x.grad().shape() == Shape{0, 3});
  CHECK(w.grad().to_vector() == std::vector<double>(6, 0.0));
  CHECK(b.grad().to_vector() == std::vector<double>(2, 0.0));
}

TEST_CASE("linear adds into gradients that stand already") {
  Tensor x = random_tensor({4, 3}, 1), w = random_tensor({2, 3}, 2), b = random_tensor({2}, 3);
  for (Tensor* t : {&x, &w, &b}) t->set_requires_grad();
  const Tensor dy = random_tensor({4, 2}, 4);
  backward(linear(x, w, b), dy);
  const auto dx = x.grad().to_vector(), dw = w.grad().to_vector(), db = b.grad().to_vector();
  backward(linear(x, w, b), dy);
  const auto twice = [](std::vector<double> v) {
    for (double& e : v) e *= 2;
    return v;
  };
  CHECK(compare(x.grad().to_vector(), twice(dx), 1e-14) == "");
  CHECK(compare(w.grad().to_vector(), twice(dw), 1e-14) == "");
  CHECK(compare(b.grad().to_vector(), twice(db), 1e-14) == "");
}

TEST_CASE("fused ops behind each other can be differentiated three times") {
  Tensor x = random_tensor({3, 4}, 1), w = random_tensor({4, 4}, 2);
  x.set_requires_grad();
  const Tensor h = linear(x, w, {}, {.activation = FusedActivation::silu});
  const Tensor y = linear(h, w, {}, {.activation = FusedActivation::gelu});
  const Tensor u = Tensor::ones({3, 4}, DType::f64);
  Tensor g = y;
  for (int order = 1; order <= 3; ++order) {
    g = grad(std::span(&g, 1), std::span(&x, 1), {.create_graph = true}, std::span(&u, 1))[0];
    CHECK(g.requires_grad());
  }
  const auto second = [&](const std::vector<Tensor>& in) {
    Tensor at = in[0].requires_grad() ? in[0] : in[0].detach().set_requires_grad();
    Tensor v = linear(linear(at, w, {}, {.activation = FusedActivation::silu}), w, {},
                      {.activation = FusedActivation::gelu});
    v = grad(std::span(&v, 1), std::span(&at, 1), {.create_graph = true}, std::span(&u, 1))[0];
    return v;
  };
  CHECK(check_gradient(second, {x.detach()}) == "");
  CHECK(check_second_gradient(second, {x.detach()}) == "");
}

TEST_CASE("linear of half types rounds once") {
  const Tensor x = random_tensor({5, 40}, 1, DType::f16), w = random_tensor({3, 40}, 2, DType::f16);
  const Tensor b = random_tensor({3}, 3, DType::f16);
  const Tensor wide = linear(to(x, DType::f32), to(w, DType::f32), to(b, DType::f32));
  CHECK(same_bits(linear(x, w, b), to(wide, DType::f16)));
}

}  // namespace
}  // namespace norma::test
