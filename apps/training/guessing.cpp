#include "apps/training/guessing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace norma {
namespace {

constexpr std::int64_t kTargets = 1 << 16;  // enough to know the shares to a per cent
constexpr double kAsGoodAs = 0.99;          // of ln V

}  // namespace

std::optional<GuessingLevel> guessing_level(const DataSet& data, const LossConfig& loss,
                                            std::int64_t batch_size) {
  const auto* cross_entropy = loss.get_if<CrossEntropyConfig>();
  const std::int64_t classes = data.spec().classes;
  if (!cross_entropy || classes < 2) return std::nullopt;
  std::vector<double> counts(static_cast<std::size_t>(classes), 0.0);
  double total = 0;
  const std::int64_t batches = data.num_batches(Part::train, batch_size);
  std::int64_t seen = 0;
  for (std::int64_t i = 0; i < batches && seen < kTargets; ++i) {
    for (std::int64_t id : data.train_batch(i, batch_size).targets.to_ids()) {
      ++seen;
      if (id == cross_entropy->ignore || id < 0 || id >= classes) continue;
      counts[static_cast<std::size_t>(id)] += 1;
      total += 1;
    }
  }
  if (total == 0) return std::nullopt;
  const double smoothing = cross_entropy->label_smoothing;
  double entropy = 0;
  for (double count : counts) {
    const double share = (1 - smoothing) * count / total + smoothing / static_cast<double>(classes);
    if (share > 0) entropy -= share * std::log(share);
  }
  const double uniform = std::log(static_cast<double>(classes));
  const std::string uniform_name = fmt::format("ln {} = {:.3f}", classes, uniform);
  if (entropy > kAsGoodAs * uniform) return GuessingLevel{uniform, uniform_name};
  return GuessingLevel{
      entropy, fmt::format("the entropy of the targets, {:.3f} ({})", entropy, uniform_name)};
}

void add_recent(std::vector<double>& recent, double loss) {
  recent.push_back(loss);
  if (recent.size() > kRecentLosses) recent.erase(recent.begin());
}

double mean_of(const std::vector<double>& recent) {
  return std::accumulate(recent.begin(), recent.end(), 0.0) / static_cast<double>(recent.size());
}

bool is_guessing(double mean, double level) { return mean > 0.98 * level; }

}  // namespace norma
