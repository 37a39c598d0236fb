// Recomputation gives the gradients of the graph that it takes the place of, to the bit.
#include "core/recompute.h"

#include <cstring>

#include "core/ops/activations.h"
#include "core/ops/arithmetic.h"
#include "core/ops/cast.h"
#include "core/ops/linear.h"
#include "core/ops/masked_norm.h"
#include "core/ops/math.h"
#include "core/ops/norm_channels.h"
#include "core/ops/reduce.h"
#include "core/storage.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"

namespace norma::test {
namespace {

// Three products with activations over one weight, so that its gradient is a sum.
Tensor part(const Tensor& x, const Tensor& w, const Tensor& b) {
  Tensor y = x;
  for (int i = 0; i < 3; ++i) y = gelu(linear(y, w, b)) + y;
  return y;
}

struct Problem {
  Tensor x = random_tensor(Shape{6, 8}, 1, DType::f32).set_requires_grad();
  Tensor w = random_tensor(Shape{8, 8}, 2, DType::f32).set_requires_grad();
  Tensor b = random_tensor(Shape{8}, 3, DType::f32).set_requires_grad();

  [[nodiscard]] Tensor run(bool again) const {
    Tensor y = tanh(x);
    for (int i = 0; i < 2; ++i) {
      const auto f = [this](std::span<const Tensor> in) {
        return std::vector<Tensor>{part(in[0], w, b)};
      };
      y = again ? recompute(f, std::span(&y, 1), std::vector<Tensor>{w, b})[0] : part(y, w, b);
    }
    return sum(y * y, {0, 1});
  }
};

bool equal(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() &&
         std::memcmp(a.raw(), b.raw(), static_cast<std::size_t>(a.numel() * size_of(a.dtype()))) ==
             0;
}

TEST_CASE("recompute gives the same bits in backward(), grad() and accumulation", "[autograd]") {
  const Problem p, q;
  for (int part = 0; part < 2; ++part) {  // twice: the second is added to the first
    const Tensor y = p.run(false), z = q.run(true);
    CHECK(equal(y, z));
    backward(y);
    backward(z);
    CHECK(equal(p.x.grad(), q.x.grad()));
    CHECK(equal(p.w.grad(), q.w.grad()));
    CHECK(equal(p.b.grad(), q.b.grad()));
  }
  const auto plain = grad(p.run(false), {p.w, p.x}), again = grad(q.run(true), {q.w, q.x});
  CHECK(equal(plain[0], again[0]));
  CHECK(equal(plain[1], again[1]));
  // One parameter alone: what does not lead to it is not run.
  CHECK(equal(grad(p.run(false), {p.b})[0], grad(q.run(true), {q.b})[0]));
}

TEST_CASE("recompute can be differentiated twice", "[autograd]") {
  const Problem p, q;
  const auto second = [](const Problem& problem, bool again) {
    const auto g = grad(problem.run(again), {problem.w, problem.x}, {.create_graph = true});
    return grad(sum(g[0] * g[0], {0, 1}) + sum(g[1] * g[1], {0, 1}), {problem.w, problem.b});
  };
  const auto plain = second(p, false), again = second(q, true);
  CHECK(compare(again[0], plain[0], 1e-5) == "");
  CHECK(compare(again[1], plain[1], 1e-5) == "");
  // A graph that is kept can be run again.
  const Tensor y = q.run(true);
  const auto one = grad(y, {q.w}, {.retain_graph = true}), two = grad(y, {q.w});
  CHECK(equal(one[0], two[0]));
  NORMA_CHECK_ERROR(grad(y, {q.w}), "was released by an earlier backward");
}

TEST_CASE("recompute of several results, of which one may be unused", "[autograd]") {
  const Tensor w = random_tensor(Shape{4}, 2, DType::f32).set_requires_grad();
  const auto f = [](std::span<const Tensor> in) {
    return std::vector<Tensor>{in[0] * 2.0, in[0] * in[0], in[0]};
  };
  const auto y = recompute(f, std::span(&w, 1));
  CHECK(equal(grad(sum(y[1], {0}), {w})[0], w.detach() * 2.0));
  const auto z = recompute(f, std::span(&w, 1));
  const Tensor all = sum(z[0] * z[1], {0}) + sum(z[2], {0});  // 2 w^3 + w
  CHECK(compare(grad(all, {w})[0], w.detach() * w.detach() * 6.0 + 1.0, 1e-6) == "");
}

TEST_CASE("recompute keeps the inputs alone", "[autograd]") {
  const auto peak = [](bool again) {
    const Tensor w = random_tensor(Shape{64, 64}, 2, DType::f32).set_requires_grad();
    Tensor y = random_tensor(Shape{512, 64}, 1, DType::f32);
    reset_peak_bytes();
    const std::int64_t before = memory_stats().live_bytes;
    for (int i = 0; i < 8; ++i) {
      const auto f = [&w](std::span<const Tensor> in) {
        return std::vector<Tensor>{part(in[0], w, {})};
      };
      y = again ? recompute(f, std::span(&y, 1), std::span(&w, 1))[0] : part(y, w, {});
    }
    backward(sum(y, {0, 1}));
    return memory_stats().peak_bytes - before;
  };
  const std::int64_t nodes = live_nodes();
  const std::int64_t plain = peak(false), again = peak(true);
  INFO(plain << " bytes without, " << again << " with");
  CHECK(again < plain / 2);
  CHECK(live_nodes() == nodes);
}

TEST_CASE("recompute notices a change in between, and leaves running statistics", "[autograd]") {
  Tensor w = random_tensor(Shape{8, 8}, 2, DType::f32).set_requires_grad();
  const Tensor x = random_tensor(Shape{6, 8}, 1, DType::f32);
  const auto f = [&w](std::span<const Tensor> in) {
    return std::vector<Tensor>{part(in[0], w, {})};
  };
  const Tensor y = recompute(f, std::span(&x, 1), std::span(&w, 1))[0];
  {
    const NoGrad off;
    w.fill_(0);
  }
  NORMA_CHECK_ERROR(backward(sum(y, {0, 1})), "was changed in place since");

  const RunningStatistics stats = make_running_statistics(8, DType::f32);
  const Tensor gain = Tensor::ones(Shape{8}).set_requires_grad();
  const Tensor mask = to(Tensor::from(Shape{6}, {1, 1, 1, 1, 1, 0}), DType::u8);
  const auto plain = [&](std::span<const Tensor> in) {
    return std::vector<Tensor>{batch_norm(in[0], gain, {}, {.training = true}, stats)};
  };
  const auto masked = [&](std::span<const Tensor> in) {
    return std::vector<Tensor>{masked_batch_norm(in[0], mask, gain, {}, {.training = true}, stats)};
  };
  std::int64_t batches = 0;
  for (const Replay& norm : {Replay(plain), Replay(masked)}) {
    const Tensor z = recompute(norm, std::span(&x, 1), std::span(&gain, 1))[0];
    const Tensor mean = stats.mean.clone();
    CHECK(stats.batches.to_ids()[0] == ++batches);
    backward(sum(z * z, {0, 1}));
    CHECK(equal(stats.mean, mean));
    CHECK(stats.batches.to_ids()[0] == batches);
  }
}

}  // namespace
}  // namespace norma::test
