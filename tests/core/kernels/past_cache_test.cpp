// Results written past the caches have the bits of the others: see Note [Past the cache].
#include "core/kernels/past_cache.h"

#include <functional>
#include <vector>

#include "core/autograd.h"
#include "core/kernels/norm_channels_task.h"
#include "core/ops/activations.h"
#include "core/ops/norm_channels.h"
#include "core/ops/norm_rows.h"
#include "core/ops/softmax.h"
#include "core/parallel.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"

namespace norma {
namespace {

using test::random_tensor;

// Ends with the scope, however that ends.
struct PretendedCache {
  explicit PretendedCache(std::int64_t bytes) { kernels::pretend_last_cache_bytes(bytes); }
  ~PretendedCache() { kernels::pretend_last_cache_bytes(0); }
  PretendedCache(const PretendedCache&) = delete;
  PretendedCache& operator=(const PretendedCache&) = delete;
};

struct Threads {
  explicit Threads(int n) { set_num_threads(n); }
  ~Threads() { set_num_threads(before); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
  int before = num_threads();
};

// What an op gives, and the gradients of all that it takes.
std::vector<Tensor> results(const Shape& shape, DType dtype,
                            const std::function<Tensor(const Tensor&, const Tensor&)>& f,
                            std::int64_t cache, int threads) {
  const PretendedCache pretended(cache);
  const Threads some(threads);
  const Tensor x = random_tensor(shape, 1, dtype).set_requires_grad();
  const Tensor w = random_tensor({shape[1]}, 2, dtype).set_requires_grad();
  const Tensor y = f(x, w);
  backward(y, random_tensor(y.shape(), 3, dtype));
  std::vector<Tensor> all{y.detach(), x.grad()};
  if (w.grad().defined()) all.push_back(w.grad());
  return all;
}

TEST_CASE("results written past the caches have the same bits", "[threads]") {
  const auto ones = [](const Tensor& like, std::int64_t n) {
    return Tensor::ones({n}, like.dtype());
  };
  struct Row {
    const char* name;
    std::function<Tensor(const Tensor&, const Tensor&)> f;
    bool images;
  };
  const Row rows[] = {
      {"layer_norm", [&](auto& x, auto& w) { return layer_norm(x, w, ones(x, x.shape()[1])); },
       false},
      {"rms_norm", [](auto& x, auto& w) { return rms_norm(x, w); }, false},
      {"group_norm",
       [&](auto& x, auto& w) { return group_norm(x, w, ones(x, x.shape()[1]), {.groups = 2}); },
       true},
      {"batch_norm", [&](auto& x, auto& w) { return batch_norm(x, w, ones(x, x.shape()[1]), {}); },
       true},
      {"softmax", [](auto& x, auto&) { return softmax(x); }, true},
      {"gelu", [](auto& x, auto&) { return gelu(x); }, true},
  };
  // Whole lines, parts of lines, and rows longer than what waits in the first-level cache.
  // BatchNorm takes the larger ones in panels; of the last of each some channels are left over.
  const Shape matrices[] = {{40, 256}, {40, 6}, {7, 4112}, {130, 1040}, {75, 2128}};
  const Shape images[] = {
      {5, 4, 4, 8}, {3, 6, 5, 5}, {3, 2, 48, 48}, {5, 38, 8, 24}, {4, 240, 8, 10}};
  const std::int64_t everything = 1;
  for (const Row& row : rows) {
    std::vector<Shape> shapes(std::begin(matrices), std::end(matrices));
    if (row.images) shapes.insert(shapes.end(), std::begin(images), std::end(images));
    for (const Shape& shape : shapes) {
      for (const DType dtype : {DType::f32, DType::f64}) {
        const std::vector<Tensor> kept = results(shape, dtype, row.f, std::int64_t{1} << 40, 2);
        for (const int threads : {1, 2, 3}) {
          const std::vector<Tensor> past = results(shape, dtype, row.f, everything, threads);
          INFO(row.name << fmt::format(" {} {}, {} threads", shape, name_of(dtype), threads));
          REQUIRE(kept.size() == past.size());
          for (std::size_t i = 0; i < kept.size(); ++i) CHECK(test::same_bits(kept[i], past[i]));
        }
      }
    }
  }
}

TEST_CASE("a result goes past the caches where it is large and begins at whole lines") {
  alignas(64) const float y[32] = {};
  const PretendedCache pretended(4096);
  CHECK(kernels::past_cache(y, 16, 3073));
  CHECK_FALSE(kernels::past_cache(y, 16, 3072));
  CHECK(kernels::past_cache(y, 16, 1366, kernels::NextReader::product));
  CHECK_FALSE(kernels::past_cache(y, 16, 1365, kernels::NextReader::product));
  CHECK_FALSE(kernels::past_cache(y, 17, 3073));
  CHECK_FALSE(kernels::past_cache(y + 4, 16, 3073));
  // What the ops above allocate does.
  CHECK(kernels::past_cache(Tensor::empty({40, 256}).data<float>(), 256, 3073));
}

TEST_CASE("large arrays have panels") {
  const auto count = [](std::int64_t samples, std::int64_t channels, std::int64_t space,
                        bool backward, int threads) {
    return kernels::panels_of<float>({samples, channels, space}, backward, threads).count;
  };
  CHECK(count(75, 2128, 1, false, 2) == 16);  // 128 columns
  CHECK(count(75, 2128, 1, true, 2) == 33);
  CHECK(count(5, 38, 192, false, 2) == 12);  // three runs
  CHECK(count(75, 511, 1, false, 2) == 0);   // fewer than two for a thread
  CHECK(count(75, 511, 1, false, 1) == 3);
  CHECK(count(20000, 2128, 1, false, 2) == 0);  // more than is kept
  CHECK(count(75, 2128, 2, false, 2) == 0);     // short runs
}

TEST_CASE("a machine has a cache") { CHECK(kernels::last_cache_bytes() > 0); }

}  // namespace
}  // namespace norma
