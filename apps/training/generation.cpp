#include "apps/training/generation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/autograd.h"
#include "core/random.h"

namespace norma {
namespace {

std::int64_t pick(const std::vector<double>& logits, const GenerationOptions& options,
                  RandomStream& random) {
  require(std::none_of(logits.begin(), logits.end(), [](double x) { return std::isnan(x); }),
          "generate: the model gives NaN; its run diverged, take an earlier checkpoint");
  std::vector<std::int64_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto likelier = [&](std::int64_t a, std::int64_t b) {
    const double x = logits[static_cast<std::size_t>(a)], y = logits[static_cast<std::size_t>(b)];
    return x > y || (x == y && a < b);
  };
  std::sort(order.begin(), order.end(), likelier);
  if (options.temperature == 0) return order[0];
  std::size_t n = order.size();
  if (options.top_k > 0) n = std::min(n, static_cast<std::size_t>(options.top_k));
  const double largest = logits[static_cast<std::size_t>(order[0])];
  std::vector<double> weights(n);
  double total = 0;
  for (std::size_t i = 0; i < n; ++i) {
    weights[i] =
        std::exp((logits[static_cast<std::size_t>(order[i])] - largest) / options.temperature);
    total += weights[i];
  }
  double u = random.uniform() * total;
  for (std::size_t i = 0; i < n; ++i) {
    u -= weights[i];
    if (u < 0) return order[i];
  }
  return order[n - 1];
}

}  // namespace

void generate(Model& model, const DataSpec& data, std::vector<std::int64_t> ids,
              const GenerationOptions& options, const std::function<void(std::int64_t)>& emit) {
  const NoGrad off;
  model.eval();
  RandomStream random(random_key(options.seed, "generate"));
  const auto context = static_cast<std::size_t>(data.input[0]);
  if (ids.empty()) ids.push_back(0);
  for (std::int64_t i = 0; i < options.tokens; ++i) {
    const std::size_t length = std::min(ids.size(), context);
    const std::span<const std::int64_t> seen(ids.data() + (ids.size() - length), length);
    const Tensor logits =
        model(Tensor::from_ids(Shape{1, static_cast<std::int64_t>(length)}, seen));
    const std::vector<double> all = logits.to_vector();
    const auto vocab = static_cast<std::ptrdiff_t>(logits.size(-1));
    const std::int64_t next = pick({all.end() - vocab, all.end()}, options, random);
    ids.push_back(next);
    emit(next);
  }
}

}  // namespace norma
