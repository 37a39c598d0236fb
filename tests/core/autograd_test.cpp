// The autograd engine. Many cases are faults that other frameworks had; the thread is named there.
#include "core/autograd.h"

#include <chrono>
#include <cmath>
#include <thread>

#include "core/ops/arithmetic.h"
#include "core/ops/broadcast.h"
#include "core/ops/linear.h"
#include "core/ops/norm_rows.h"
#include "tests/support/op_case.h"

namespace norma::test {
namespace {

Tensor leaf(std::initializer_list<double> values) {
  return Tensor::from(Shape{static_cast<std::int64_t>(values.size())}, values, DType::f64)
      .set_requires_grad();
}

Tensor sum_of(const Tensor& x) { return sum_to(x, Shape{}); }

TEST_CASE("a chain of a million nodes runs backward and is freed, in linear time", "[autograd]") {
  const auto run = [](int n) {
    const auto start = std::chrono::steady_clock::now();
    Tensor x = leaf({1.0});
    {
      Tensor y = x;
      for (int i = 0; i < n; ++i) y = add_scalar(y, 1e-6);
      backward(y);
    }
    CHECK(x.grad().item() == 1.0);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  run(1000);
  const double small = run(100'000), large = run(1'000'000);
  INFO("100,000 nodes " << small << " s, 1,000,000 nodes " << large << " s");
  CHECK(large < 40 * small);  // quadratic would be a factor of 100
  CHECK(live_nodes() == 0);
}

TEST_CASE("a diamond chain runs each node once (karpathy/micrograd#90)", "[autograd]") {
  Tensor y = leaf({1.0});
  const Tensor x = y;
  for (int i = 0; i < 60; ++i) y = add(y, y);
  backward(y);
  CHECK(x.grad().item() == std::ldexp(1.0, 60));
}

TEST_CASE("a shared value is propagated once, when it is complete (sebgao/cTensor#5)",
          "[autograd]") {
  const Tensor x = leaf({1.0});
  const Tensor a = Tensor::from(Shape{1}, {1.0}, DType::f64);
  const Tensor xa = mul(x, a);
  const Tensor f = add(add(mul(x, xa), mul(x, xa)), mul(mul(x, x), a));
  backward(f);
  CHECK(x.grad().item() == 6.0);
}

TEST_CASE("backward twice (pytorch/pytorch#13494)", "[autograd]") {
  const Tensor x = Tensor::ones(Shape{16}, DType::f64).set_requires_grad();
  const Tensor s = sum_of(x);
  backward(s);
  NORMA_CHECK_ERROR(backward(s), "retain_graph");

  Tensor z = leaf({3.0});
  const Tensor two = mul_scalar(z, 2.0);
  const Tensor loss = mul(two, two);
  backward(loss, {}, {.retain_graph = true});
  CHECK(z.grad().item() == 24.0);
  backward(loss, {}, {.retain_graph = true});
  CHECK(z.grad().item() == 48.0);  // intermediate gradients start anew: not 72
}

TEST_CASE("a gradient never accumulates into memory that others see (pytorch/pytorch#17935)",
          "[autograd]") {
  const Tensor x = leaf({1.0, 2.0, 3.0});
  backward(add(sum_of(x), sum_of(mul(x, x))));
  CHECK(x.grad().to_vector() == std::vector<double>{3, 5, 7});

  // Two leaves whose gradient is the very same tensor, then one of them gets more.
  const Tensor a = leaf({1.0, 1.0}), b = leaf({1.0, 1.0});
  const Tensor y = add(a, b);
  backward(sum_of(y), {}, {.retain_graph = true});
  backward(sum_of(mul_scalar(a, 10.0)));
  CHECK(a.grad().to_vector() == std::vector<double>{11, 11});
  CHECK(b.grad().to_vector() == std::vector<double>{1, 1});
}

TEST_CASE("a saved tensor that was changed in place is an error, not a wrong gradient",
          "[autograd]") {
  Tensor x = leaf({2.0}), w = leaf({3.0});
  const Tensor y = mul(x, w);
  {
    const NoGrad off;
    w.fill_(5.0);
  }
  NORMA_CHECK_ERROR(backward(y),
                    "mul: a tensor of shape (1) that its gradient needs was changed in place");
  NORMA_CHECK_ERROR(x.fill_(1.0), "fill_: an in-place change");
}

TEST_CASE(
    "the gradient mode is restored in every case, and is a thread's own (deepinv/deepinv#166)",
    "[autograd]") {
  const Tensor x = leaf({3.0});
  try {
    const NoGrad off;
    throw Error("inside");
  } catch (const Error&) {
  }
  CHECK(mul(x, x).requires_grad());
  {
    const NoGrad off;
    CHECK_FALSE(mul(x, x).requires_grad());
    {
      const EnableGrad on;
      CHECK(mul(x, x).requires_grad());
      bool other = false;
      std::thread([&] { other = grad_enabled(); }).join();
      CHECK(other);
    }
    CHECK_FALSE(mul(x, x).requires_grad());
  }
}

TEST_CASE("threads with graphs of their own may share a leaf (tracel-ai/burn#5573)", "[autograd]") {
  const Tensor x = leaf({1.0, 2.0});
  constexpr int kThreads = 4, kPasses = 200;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kPasses; ++i) backward(sum_of(mul_scalar(x, 1.0)));
    });
  }
  for (std::thread& t : threads) t.join();
  CHECK(x.grad().to_vector() == std::vector<double>(2, kThreads * kPasses));
}

TEST_CASE("a result that is dropped frees its graph (Oneflow-Inc/oneflow#4707)", "[autograd]") {
  const std::int64_t nodes = live_nodes(), storages = memory_stats().live_storages;
  for (int i = 0; i < 10; ++i) {
    const Tensor x = leaf({1.0, 2.0});
    const Tensor y = div(mul(x, x), add_scalar(x, 1.0));
    CHECK(live_nodes() > nodes);
  }
  CHECK(live_nodes() == nodes);
  CHECK(memory_stats().live_storages == storages);
}

TEST_CASE("grad() of a result, of an unused input, and of any order", "[autograd]") {
  const Tensor x = leaf({2.0}), unused = leaf({1.0});
  const Tensor y = mul(x, x);                                              // x^2
  const Tensor z = mul(y, mul(y, x));                                      // x^5
  CHECK(grad(z, {y}, {.retain_graph = true})[0].item() == 2 * 4.0 * 2.0);  // dz/dy = 2yx
  CHECK_FALSE(grad(z, {x, unused}, {.retain_graph = true, .allow_unused = true})[1].defined());
  NORMA_CHECK_ERROR(grad(z, {unused}, {.retain_graph = true}), "do not depend on input 0");
  CHECK_FALSE(x.grad().defined());

  Tensor d = z;
  double expected = 32;
  for (int order = 1; order <= 6; ++order) {
    expected *= (6.0 - order) / 2.0;
    const std::vector<Tensor> g = d.requires_grad()
                                      ? grad(d, {x}, {.create_graph = true, .allow_unused = true})
                                      : std::vector<Tensor>(1);
    d = g[0].defined() ? g[0] : Tensor::zeros(Shape{1}, DType::f64);
    INFO("order " << order);
    CHECK(std::abs(d.item() - expected) <= 1e-12 * (1 + std::abs(expected)));
  }
}

TEST_CASE("hooks see the whole gradient and may replace it", "[autograd]") {
  Tensor x = leaf({2.0});
  std::vector<double> seen;
  const int id = register_hook(x, [&](const Tensor& g) {
    seen.push_back(g.item());
    return mul_scalar(g, 10.0);
  });
  const Tensor y = mul_scalar(x, 3.0);
  register_hook(y, [&](const Tensor& g) {
    seen.push_back(g.item());
    return Tensor();
  });
  backward(add(y, mul(y, x)));  // 3x + 3x^2: dy = 1 + x = 3, dx = 3 * 3 + 3x
  CHECK(seen == std::vector<double>{3, 15});
  CHECK(x.grad().item() == 150);
  remove_hook(x, id);
  x.clear_grad();
  backward(mul_scalar(x, 3.0));
  CHECK(x.grad().item() == 3);

  // Of grad() too; and a hook may remove itself.
  const Tensor u = leaf({1.0});
  int once = 0;
  once = register_hook(u, [&](const Tensor& g) {
    remove_hook(u, once);
    return mul_scalar(g, 10.0);
  });
  CHECK(grad(mul_scalar(u, 3.0), {u})[0].item() == 30);
  CHECK(grad(mul_scalar(u, 3.0), {u})[0].item() == 3);
}

// Toy ops whose backward asks for memory, as kernels do.
Tensor toy(const OpInfo& op, const Tensor& a) {
  Tensor y = a.clone();
  record(op, y, {a, a}, {});
  return y;
}

TEST_CASE("one tensor as two inputs of a node that writes to lent memory", "[autograd]") {
  // The gradient of input 1 comes while the memory for input 0 is not written yet.
  static const OpInfo op{"toy", [](BackwardContext& ctx) {
                           Destination d = ctx.destination(0);
                           ctx.set_grad(1, Tensor::full(Shape{1}, 2.0, DType::f64));
                           double* to = d.tensor.mutable_data<double>();
                           *to = (d.accumulate ? *to : 0.0) + 1.0;
                         }};
  const Tensor x = leaf({3.0});
  backward(toy(op, x));
  CHECK(x.grad().item() == 3);
  backward(toy(op, x));
  CHECK(x.grad().item() == 6);
  CHECK(grad(toy(op, mul_scalar(x, 1.0)), {x})[0].item() == 3);

  // Memory whose handle is dropped before it is written to.
  static const OpInfo both{"toy", [](BackwardContext& ctx) {
                             double* to[2];
                             for (int i : {0, 1}) {
                               Destination d = ctx.destination(i);
                               to[i] = d.tensor.mutable_data<double>();
                               if (!d.accumulate) *to[i] = 0;
                             }
                             CHECK(to[0] != to[1]);
                             *to[1] += 2;
                             *to[0] += 1;
                           }};
  CHECK(grad(toy(both, mul_scalar(x, 1.0)), {x})[0].item() == 3);

  const Tensor z = leaf({1.0, 2.0, 4.0}), w = leaf({1.0, 2.0, 3.0});
  const Tensor same = mul_scalar(w, 1.0);
  const Tensor once = grad(sum_of(layer_norm(z, same, same)), {w})[0];
  const Tensor g = leaf({1.0, 2.0, 3.0}), b = leaf({1.0, 2.0, 3.0});
  const std::vector<Tensor> apart = grad(sum_of(layer_norm(z, g, b)), {g, b});
  CHECK(compare(once, add(apart[0], apart[1]), 1e-14) == "");
}

TEST_CASE("a backward that throws leaves no gradient half written", "[autograd]") {
  static const OpInfo op{"toy", [](BackwardContext& ctx) {
                           (void)ctx.destination(0);
                           throw Error("inside");
                         }};
  const Tensor x = leaf({3.0});
  NORMA_CHECK_ERROR(backward(toy(op, x)), "inside");
  CHECK_FALSE(x.grad().defined());
  backward(mul_scalar(x, 2.0));
  CHECK(x.grad().item() == 2);
}

TEST_CASE("a graph of the gradient, where an input of a fused op is a result nobody asks for",
          "[autograd]") {
  const Tensor x = leaf({1.0, 2.0, 4.0}), w = leaf({1.0, 2.0, 3.0});
  const Tensor y = layer_norm(x, mul_scalar(w, 2.0), {});
  const Tensor dx = grad(sum_of(mul(y, y)), {x}, {.create_graph = true})[0];
  const Tensor s = sum_of(mul(dx, dx));
  // s is homogeneous in w, of degree 4: w . ds/dw = 4 s (Euler).
  const Tensor ds = grad(s, {w})[0];
  CHECK(s.item() > 0.1);
  CHECK(std::abs(sum_of(mul(w, ds)).item() - 4 * s.item()) <= 1e-10 * s.item());
}

TEST_CASE("an op without a backward throws when it is recorded", "[autograd]") {
  static const OpInfo op{"toy", nullptr};
  const Tensor x = leaf({1.0});
  Tensor y = x.clone();
  NORMA_CHECK_ERROR(record(op, y, {x}, {}), "toy: has no gradient; detach() its input");
}

TEST_CASE("a saved tensor that only the op still holds, changed in place before", "[autograd]") {
  // y = x^2, computed again from its saved factor, which is taken out of the node.
  static int taken = 0;
  static const OpInfo op{"toy",
                         [](BackwardContext& ctx) {
                           const Tensor slope = ctx.recomputed_beside();
                           ctx.set_grad(0, mul(ctx.grad_output(), slope));
                         },
                         nullptr,
                         [](BackwardContext& ctx) {
                           Tensor x = ctx.take_saved(0);
                           if (x.defined()) {
                             ++taken;
                           } else {
                             x = ctx.saved(0);
                           }
                           ctx.set_recomputed(mul(x, x), mul_scalar(x, 2.0));
                         }};
  const Tensor x = Tensor::full(Shape{1, 1}, 3, DType::f64),
               w = Tensor::ones(Shape{1, 1}, DType::f64);
  Tensor(x).set_requires_grad();
  Tensor(w).set_requires_grad();
  const auto result = [&](bool change) {
    Tensor y = mul(x, x).detach(), factor = x.detach().clone();
    record(op, y, {x}, {factor});
    allow_recompute(y);
    if (change) factor.fill_(5.0);
    return linear(y, w, {});
  };
  CHECK(grad(result(false), {x, w})[0].item() == 6);
  CHECK(taken == 1);
  NORMA_CHECK_ERROR(grad(result(true), {x, w}), "was changed in place since");
}

TEST_CASE("an op that cannot compute its output again is not asked to", "[autograd]") {
  static const OpInfo op{"toy", [](BackwardContext& ctx) { ctx.set_grad(0, ctx.grad_output()); }};
  const Tensor x = leaf({1.0});
  Tensor y = x.clone();
  allow_recompute(y);  // not recorded
  record(op, y, {x}, {});
  NORMA_CHECK_ERROR(allow_recompute(y), "toy: allow_recompute needs an op with OpInfo::recompute");
}

TEST_CASE("wrong calls of backward say what to do", "[autograd]") {
  const Tensor x = leaf({1.0, 2.0});
  NORMA_CHECK_ERROR(backward(mul(x, x)), "only one element means 1");
  NORMA_CHECK_ERROR(backward(Tensor::ones(Shape{})), "is not part of a graph");
  NORMA_CHECK_ERROR(backward(mul(x, x), Tensor::ones(Shape{3}, DType::f64)),
                    "must have shape (2) of f64; got (3) of f64");
  NORMA_CHECK_ERROR(mul(x, x).set_requires_grad(), "is the result of mul; detach() it first");
  NORMA_CHECK_ERROR(Tensor::ones(Shape{1}, DType::i64).set_requires_grad(),
                    "expected a floating type");
}

TEST_CASE("a gradient buffer is written, and no gradient is not a zero gradient", "[autograd]") {
  Tensor x = leaf({1.0, 2.0});
  Tensor buffer = Tensor::full(Shape{2}, 99, DType::f64);
  x.set_grad_buffer(buffer);
  CHECK_FALSE(x.grad().defined());
  backward(sum_of(mul_scalar(x, 4.0)));
  CHECK(x.grad().same(buffer));
  CHECK(buffer.to_vector() == std::vector<double>{4, 4});
  x.clear_grad();
  CHECK_FALSE(x.grad().defined());
}

TEST_CASE("a broadcast gradient has the operand's shape, in both orders (pytorch/pytorch#818)",
          "[autograd]") {
  const auto check = [](const Shape& sa, const Shape& sb, const Shape& expected) {
    Tensor a = Tensor::ones(sa, DType::f64).set_requires_grad();
    Tensor b = Tensor::ones(sb, DType::f64).set_requires_grad();
    for (const Tensor& y : {mul(a, b), mul(b, a)}) {
      CHECK(y.shape() == expected);
      a.clear_grad();
      b.clear_grad();
      backward(sum_of(y));
      REQUIRE(a.grad().shape() == sa);
      REQUIRE(b.grad().shape() == sb);
      const auto share = [&](const Shape& s) {
        return static_cast<double>(expected.numel()) /
               static_cast<double>(std::max<std::int64_t>(1, s.numel()));
      };
      for (double g : a.grad().to_vector()) CHECK(g == share(sa));
      for (double g : b.grad().to_vector()) CHECK(g == share(sb));
    }
  };
  check(Shape{5, 1}, Shape{5}, Shape{5, 5});
  check(Shape{4}, Shape{2, 3, 4}, Shape{2, 3, 4});
  check(Shape{}, Shape{2, 3}, Shape{2, 3});
  check(Shape{2, 1, 4}, Shape{3, 1}, Shape{2, 3, 4});
  check(Shape{0, 3}, Shape{1, 3}, Shape{0, 3});
}

}  // namespace
}  // namespace norma::test
