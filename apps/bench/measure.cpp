#include "apps/bench/measure.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/ops/cross_entropy.h"
#include "core/parallel.h"
#include "core/random.h"
#include "models/models.h"
#include "optim/adamw.h"
#include "optim/clipping.h"

namespace norma::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kSeed = 0;
constexpr int kWarmupSteps = 3;
constexpr std::size_t kFewestSteps = 5;
constexpr double kRate = 1e-4, kDecay = 0.01, kClipNorm = 1;

Tensor random_ids(const Shape& shape, std::int64_t below, const char* stream) {
  RandomStream random(random_key(kSeed, stream));
  std::vector<std::int64_t> ids(static_cast<std::size_t>(shape.numel()));
  for (std::int64_t& id : ids) id = random.below(below);
  return Tensor::from_ids(shape, ids);
}

struct Data {
  Signature signature;
  Tensor inputs, targets;
};

Data make_data(const Workload& w) {
  if (w.context > 0) {
    const Shape shape{w.batch, w.context};
    return {{.shape = {w.context}, .vocab = w.vocab},
            random_ids(shape, w.vocab, "bench/inputs"),
            random_ids(shape, w.vocab, "bench/targets")};
  }
  const Shape sample = w.flat ? Shape{kImageSide * kImageSide} : Shape{1, kImageSide, kImageSide};
  Shape shape{w.batch};
  for (const std::int64_t size : sample) shape.push_back(size);
  Tensor inputs = Tensor::empty(shape);
  fill_normal(inputs, 0, 1, random_key(kSeed, "bench/inputs"));
  return {{.shape = sample}, inputs, random_ids({w.batch}, kClasses, "bench/targets")};
}

double peak_rss_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;  // Linux counts KiB
}

}  // namespace

Result measure(const Workload& w, double seconds) {
  const Data data = make_data(w);
  const auto config = config::parse<ModelConfig>(config::parse_json(w.model), "model");
  const ModelPtr model = config.build(kSeed, data.signature);
  const FlatParametersPtr parameters = flatten(model->named_parameters());
  AdamWConfig adamw;
  adamw.weight_decay = kDecay;
  adamw.no_decay.emplace();
  const OptimizerPtr optimizer = make_optimizer(adamw, parameters);

  const auto step = [&] {
    optimizer->clear_gradients();
    Tensor loss = cross_entropy((*model)(data.inputs), data.targets);
    loss.backward();
    double scale = 1;
    if (w.clip) scale = clip_gradients(*parameters, {.clip_norm = kClipNorm}).grad_scale;
    optimizer->step(kRate, scale);
    return loss.item();
  };
  for (int i = 0; i < kWarmupSteps; ++i) step();
  std::vector<double> ms;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (ms.size() < kFewestSteps || Clock::now() < end) {
    const auto start = Clock::now();
    step();
    ms.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  std::sort(ms.begin(), ms.end());
  return {.framework = "norma",
          .version = NORMA_VERSION,
          .workload = w.name,
          .threads = num_threads(),
          .params = parameters->numel(),
          .ms_min = ms.front(),
          .ms_median = ms[ms.size() / 2],
          .steps = static_cast<std::int64_t>(ms.size()),
          .peak_rss_mib = peak_rss_mib()};
}

}  // namespace norma::bench
