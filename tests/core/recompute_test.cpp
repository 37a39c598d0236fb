// Results that are computed again in backward instead of being kept: see Note [Recomputed].
#include "core/autograd.h"
#include "core/ops/activations.h"
#include "core/ops/arithmetic.h"
#include "core/ops/linear.h"
#include "core/ops/norm_rows.h"
#include "core/ops/reduce.h"
#include "core/parallel.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"

namespace norma {
namespace {

using test::random_tensor;

Tensor leaf(const Shape& shape, std::uint64_t seed) {
  return random_tensor(shape, seed, DType::f32, -1, 1).set_requires_grad();
}

struct Layer {
  Tensor x = leaf({64, 32}, 1), gain = leaf({32}, 2), shift = leaf({32}, 3);
  Tensor up = leaf({128, 32}, 4), up_bias = leaf({128}, 5), down = leaf({32, 128}, 6);

  [[nodiscard]] Tensor hidden() const {
    return linear(layer_norm(x, gain, shift), up, up_bias, {.activation = FusedActivation::gelu});
  }
  [[nodiscard]] std::vector<Tensor> gradients() const {
    return {x.grad(), gain.grad(), shift.grad(), up.grad(), up_bias.grad(), down.grad()};
  }
};

bool same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!test::same_bits(a[i], b[i])) return false;
  }
  return a.size() == b.size();
}

TEST_CASE("recomputed results are not kept, and give the gradients of those that are",
          "[autograd]") {
  const Layer plain, kept;
  const std::int64_t before = memory_stats().live_bytes;
  const Tensor loss = sum(linear(plain.hidden(), plain.down));
  // Kept: what the activation is computed from (64, 128). Not kept: its result, and the norm's.
  const std::int64_t taken = memory_stats().live_bytes - before;
  CHECK(taken >= 64 * 128 * 4);
  CHECK(taken < 64 * 128 * 4 + 64 * 32 * 4);
  loss.backward();

  // A product with 1 is no activation: its result is kept, with the bits of its factor.
  const Tensor normed = layer_norm(kept.x, kept.gain, kept.shift) * 1.0;
  const Tensor hidden =
      linear(normed, kept.up, kept.up_bias, {.activation = FusedActivation::gelu}) * 1.0;
  sum(linear(hidden, kept.down)).backward();
  CHECK(same(plain.gradients(), kept.gradients()));
}

TEST_CASE("a graph of recomputed results can be kept and run again", "[autograd]") {
  const Layer l;
  const Tensor loss = sum(linear(l.hidden(), l.down));
  backward(loss, {}, {.retain_graph = true});
  const Tensor once = l.up.grad().clone();
  loss.backward();
  CHECK(test::same_bits(l.up.grad(), once + once));
  NORMA_CHECK_ERROR(loss.backward(), "released");
}

TEST_CASE("two consumers of a recomputed result may run one after the other", "[autograd]") {
  const Layer l;
  const Tensor other = leaf({32, 128}, 7);
  const Tensor h = l.hidden();
  const Tensor first = sum(linear(h, l.down)), second = sum(linear(h, other));
  // The first pass stops above h, the second needs what h was computed from.
  const Tensor wanted = grad(second, {other}, {.retain_graph = true})[0];
  CHECK(test::same_bits(grad(first, {l.down})[0], wanted));
  CHECK(test::same_bits(grad(second, {other})[0], wanted));
  CHECK(l.hidden().defined());
}

TEST_CASE("a pass that goes through releases what others still recompute from only with them",
          "[autograd]") {
  const Layer l;
  const Tensor other = leaf({32, 128}, 7);
  const Tensor h = l.hidden();
  const Tensor first = sum(linear(h, l.down)), second = sum(linear(h, other));
  first.backward();
  // It ends at `other`, above the part that has run.
  CHECK(test::same_bits(grad(second, {other})[0], l.down.grad()));
}

TEST_CASE("a parameter changed before a result is recomputed is an error", "[autograd]") {
  Layer l;
  const Tensor loss = sum(linear(l.hidden(), l.down));
  {
    const NoGrad off;
    l.gain.fill_(2);
  }
  NORMA_CHECK_ERROR(loss.backward(), "changed in place");
}

}  // namespace
}  // namespace norma
