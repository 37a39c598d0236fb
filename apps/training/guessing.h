// The loss of a network that has learned nothing but how often each answer comes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/data/data_set.h"
#include "layers/losses.h"

namespace norma {

struct GuessingLevel {
  double loss = 0;
  std::string name;  // "ln 16 = 2.773", or "the entropy of the targets, 2.541 (ln 65 = 4.174)"
};

// The entropy in nats of how often each class stands among the targets of the first batches; with
// label smoothing, of the smoothed shares. Where that is as good as ln V, it is called ln V.
// Nothing where the loss is not cross_entropy.
[[nodiscard]] std::optional<GuessingLevel> guessing_level(const DataSet& data,
                                                          const LossConfig& loss,
                                                          std::int64_t batch_size);

// The last losses of a run, by which it is compared with that level: at most ten.
constexpr std::size_t kRecentLosses = 10;
// Puts a loss behind the recent ones, and lets the oldest go.
void add_recent(std::vector<double>& recent, double loss);
[[nodiscard]] double mean_of(const std::vector<double>& recent);
// True iff the mean of recent losses lies within 2 % of the level of guessing, or above it.
[[nodiscard]] bool is_guessing(double mean, double level);

}  // namespace norma
