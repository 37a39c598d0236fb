#include "apps/training/generation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/autograd.h"
#include "core/ops/movement.h"
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

// A model that reads a growing text; see Note [What generation sees].
class Reader {
 public:
  Reader(Model& model, std::int64_t context, bool cache)
      : model_(model),
        context_(static_cast<std::size_t>(context)),
        bounded_(model.continues() != Continues::endlessly),
        cached_(cache && model.continues() != Continues::no) {}

  // The logits of what follows `ids`, which begin with those of the last call.
  std::vector<double> logits_behind(const std::vector<std::int64_t>& ids) {
    if (bounded_ && ids.size() - start_ > context_) {
      start_ = ids.size() - std::max<std::size_t>(1, context_ / 2);
      cache_ = Cache{};
    }
    Forward pass;
    if (cached_) pass.cache = &cache_;
    const std::span<const std::int64_t> unread =
        std::span(ids).subspan(start_ + static_cast<std::size_t>(cache_.length));
    const Tensor logits = model_.forward(
        Tensor::from_ids(Shape{1, static_cast<std::int64_t>(unread.size())}, unread), pass);
    return slice(logits, 1, logits.size(1) - 1, logits.size(1)).to_vector();
  }

 private:
  Model& model_;
  std::size_t context_;
  bool bounded_, cached_;
  std::size_t start_ = 0;
  Cache cache_;
};

}  // namespace

void generate(Model& model, const DataSpec& data, std::vector<std::int64_t> ids,
              const GenerationOptions& options, const std::function<void(std::int64_t)>& emit) {
  const NoGrad off;
  model.eval();
  RandomStream random(random_key(options.seed, "generate"));
  Reader reader(model, data.input[0], options.cache);
  if (data.edge >= 0) ids.insert(ids.begin(), data.edge);
  if (ids.empty()) ids.push_back(0);
  for (std::int64_t i = 0; i < options.tokens; ++i) {
    const std::int64_t next = pick(reader.logits_behind(ids), options, random);
    if (next == data.edge) break;
    ids.push_back(next);
    emit(next);
  }
}

}  // namespace norma
