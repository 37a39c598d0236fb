// What the verbs that train have in common.
#pragma once

#include "apps/cli/verb.h"
#include "apps/training/trainer.h"

namespace norma::cli {

// Trains, prints a line about the result, and returns the exit status.
[[nodiscard]] Status train_and_report(const RunConfig& config, const TrainOptions& options);

}  // namespace norma::cli
