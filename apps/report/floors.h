// Levels of the loss that the data alone decide.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "apps/report/chart.h"
#include "core/config/json.h"

namespace norma::report {

struct DataFloors {
  std::optional<double> guessing;  // ln V
  // ln V; of a text whose next token is predicted, also the entropy of the training part's tokens
  // (unigram), and of a token given the one before it (bigram).
  std::vector<Level> levels;
};

// Of a run's configuration. Nothing where the loss is not cross_entropy, or the data cannot be
// read.
[[nodiscard]] DataFloors floors_of(const config::Json& run);

// -sum p ln p of the shares, in nats.
[[nodiscard]] double entropy_of(std::span<const double> counts);

}  // namespace norma::report
