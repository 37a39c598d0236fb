#include "core/ops/linear.h"

#include <cmath>

#include "core/ops/cast.h"
#include "core/ops/movement.h"
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

// Inputs: x, the weights, the biases.
OpCase stack_row(std::size_t maps, std::vector<std::vector<Shape>> samples) {
  OpCase c;
  c.run = [=](const std::vector<Tensor>& x) {
    const std::span<const Tensor> all(x);
    return linear_stack(x[0], all.subspan(1, maps), all.subspan(1 + maps));
  };
  c.reference = [=](const std::vector<Tensor>& x) {
    std::vector<double> y;
    for (std::size_t i = 0; i < maps; ++i) {
      std::vector<Tensor> one{x[0], x[1 + i]};
      if (x.size() > 1 + maps) one.push_back(x[1 + maps + i]);
      const auto part = row(FusedActivation::none).reference(one);
      y.insert(y.end(), part.begin(), part.end());
    }
    return y;
  };
  c.samples = std::move(samples);
  c.tolerance_f32 = 1e-5;
  return c;
}

NORMA_OP_CASE(linear_stack, three) {
  OpCase c = stack_row(3, {{{3, 4}, {5, 4}, {5, 4}, {5, 4}, {5}, {5}, {5}},
                           {{2, 7, 3}, {4, 3}, {4, 3}, {4, 3}},
                           {{17, 31}, {15, 31}, {15, 31}, {15, 31}, {15}, {15}, {15}},
                           {{5}, {2, 5}, {2, 5}, {2, 5}, {2}, {2}, {2}},
                           {{0, 4}, {5, 4}, {5, 4}, {5, 4}, {5}, {5}, {5}},
                           {{4, 129, 33}, {64, 33}, {64, 33}, {64, 33}, {64}, {64}, {64}}});
  const Tensor x = Tensor::ones({2, 3}), w = Tensor::ones({4, 3}), b = Tensor::ones({4});
  const std::vector<Tensor> two{w, w}, none, four{w, w, w, w}, mixed{w, Tensor::ones({5, 3})};
  c.errors = {{[=] { (void)linear_stack(x, none); }, "expected 1 to 3 weights; got 0"},
              {[=] { (void)linear_stack(x, four); }, "expected 1 to 3 weights; got 4"},
              {[=] { (void)linear_stack(x, two, std::span(&b, 1)); },
               "expected as many biases as weights, 2, or none; got 1"},
              {[=] {
                 (void)linear_stack(x, two, std::vector<Tensor>{b, Tensor()});
               },
               "linear_stack: bias 1 is not defined"},
              {[=] { (void)linear_stack(x, mixed); },
               "linear_stack: the weights must have one shape; got (4, 3) and (5, 3)"},
              {[=] {
                 (void)linear_stack(Tensor::ones({2, 5}), two);
               },
               "linear_stack: weight must have shape (out, 5), for the last axis of x (2, 5); got "
               "(4, 3)"}};
  return c;
}
NORMA_OP_CASE(linear_stack, one) {
  return stack_row(1, {{{3, 4}, {5, 4}, {5}}, {{300, 40}, {33, 40}}});
}

TEST_CASE("linear_stack has the bits of linear, and its gradients") {
  const std::int64_t rows = 512, in = 64, out = 48;
  const Tensor dy = random_tensor({3, rows, out}, 9, DType::f32);
  std::vector<Tensor> kept[2];
  for (const bool stacked : {false, true}) {
    std::vector<Tensor> p{random_tensor({rows, in}, 1, DType::f32)};
    for (std::uint64_t i = 0; i < 3; ++i) p.push_back(random_tensor({out, in}, 2 + i, DType::f32));
    for (std::uint64_t i = 0; i < 3; ++i) p.push_back(random_tensor({out}, 5 + i, DType::f32));
    for (Tensor& t : p) t.set_requires_grad();
    const std::span<const Tensor> all(p);
    if (stacked) {
      const Tensor y = linear_stack(p[0], all.subspan(1, 3), all.subspan(4));
      for (std::int64_t i = 0; i < 3; ++i) {
        kept[1].push_back(reshape(slice(y.detach(), 0, i, i + 1), {rows, out}));
      }
      backward(y, dy);
    } else {
      std::vector<Tensor> y, seeds;
      for (std::int64_t i = 0; i < 3; ++i) {
        const auto k = static_cast<std::size_t>(i);
        y.push_back(linear(p[0], p[1 + k], p[4 + k]));
        seeds.push_back(reshape(slice(dy, 0, i, i + 1), {rows, out}));
        kept[0].push_back(y.back().detach());
      }
      backward(y, seeds);
    }
    for (const Tensor& t : p) kept[stacked ? 1 : 0].push_back(t.grad());
  }
  REQUIRE(kept[0].size() == 10);
  for (std::size_t i = 0; i < 10; ++i) {
    INFO(i);
    CHECK(same_bits(kept[0][i], kept[1][i]));
  }
}

// Against the f32 op on widened operands, whose results are rounded once.
TEST_CASE("linear_stack: the gradients of half types are rounded once") {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    std::vector<Tensor> half{random_tensor({9, 33}, 1, dtype)}, wide;
    for (std::uint64_t i = 0; i < 3; ++i) half.push_back(random_tensor({16, 33}, 2 + i, dtype));
    for (std::uint64_t i = 0; i < 3; ++i) half.push_back(random_tensor({16}, 5 + i, dtype));
    for (const Tensor& t : half) wide.push_back(to(t, DType::f32).detach());
    const Tensor dy = random_tensor({3, 9, 16}, 9, dtype);
    for (std::vector<Tensor>* p : {&half, &wide}) {
      for (Tensor& t : *p) t.set_requires_grad();
      const std::span<const Tensor> all(*p);
      backward(linear_stack(all[0], all.subspan(1, 3), all.subspan(4)), to(dy, all[0].dtype()));
    }
    for (std::size_t i = 0; i < half.size(); ++i) {
      INFO(name_of(dtype) << " " << i);
      CHECK(same_bits(half[i].grad(), to(wide[i].grad(), dtype)));
    }
  }
}

TEST_CASE("linear_stack: half types round once, and one weight may stand twice") {
  const Tensor x = random_tensor({5, 40}, 1, DType::bf16),
               w = random_tensor({3, 40}, 2, DType::bf16);
  const std::vector<Tensor> weights{w, w};
  const Tensor y = linear_stack(x, weights);
  CHECK(y.dtype() == DType::bf16);
  CHECK(same_bits(reshape(slice(y, 0, 1, 2), {5, 3}), linear(x, w)));
  Tensor a = random_tensor({4, 3}, 1), twice = random_tensor({2, 3}, 2);
  twice.set_requires_grad();
  const std::vector<Tensor> same{twice, twice};
  backward(linear_stack(a, same), Tensor::ones({2, 4, 2}, DType::f64));
  const auto sum = twice.grad().to_vector();
  twice.clear_grad();
  backward(linear(a, twice), Tensor::full({4, 2}, 2, DType::f64));
  CHECK(compare(sum, twice.grad().to_vector(), 1e-14) == "");
}

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
