// A training step after the first takes its memory from what the one before has left.
#include "core/ops/cross_entropy.h"
#include "core/sanitizer.h"
#include "models/transformer.h"
#include "optim/clipping.h"
#include "optim/optimizers.h"
#include "tests/support/op_case.h"

namespace norma::test {
namespace {

TEST_CASE("a step after the first asks the system for no memory", "[memory]") {
  if (kAddressSanitizer) return;  // there is no pool under it
  TransformerConfig config;
  config.layers = std::int64_t{3};
  config.width = 64;
  config.heads = 2;
  const ModelPtr model = config.build(0, {.shape = Shape{24}, .vocab = 50}, DType::f32);
  const FlatParametersPtr parameters = flatten(model->named_parameters());
  const OptimizerPtr optimizer = make_optimizer(OptimizerConfig(AdamWConfig()), parameters);
  const std::vector<std::int64_t> ids(8 * 24, 7);
  const Tensor x = Tensor::from_ids(Shape{8, 24}, ids);
  const auto step = [&] {
    optimizer->clear_gradients();
    backward(cross_entropy((*model)(x), x));
    optimizer->step(1e-3, clip_gradients(*parameters, {.clip_norm = 1}).grad_scale);
  };
  release_cached_memory();
  const std::int64_t before = memory_stats().system_allocations;
  step();
  const std::int64_t first = memory_stats().system_allocations;
  CHECK(first > before);
  CHECK(memory_stats().cached_bytes > 0);
  step();
  step();
  CHECK(memory_stats().system_allocations == first);
}

TEST_CASE("cached memory goes back when asked to", "[memory]") {
  if (kAddressSanitizer) return;
  constexpr std::int64_t kLarge = std::int64_t{64} << 20;
  const Tensor kept = Tensor::full(Shape{1000}, 3);
  (void)Tensor::zeros(Shape{kLarge}, DType::u8);
  const MemoryStats before = memory_stats();
  CHECK(before.cached_bytes >= kLarge);
  release_cached_memory();
  CHECK(memory_stats().cached_bytes <= before.cached_bytes - kLarge);
  CHECK(memory_stats().live_bytes == before.live_bytes);
  CHECK(Tensor::zeros(Shape{kLarge}, DType::u8).data<std::uint8_t>()[kLarge - 1] == 0);
  CHECK(kept.to_vector() == std::vector<double>(1000, 3));
}

}  // namespace
}  // namespace norma::test
