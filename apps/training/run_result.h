// How a run ended, and its summary.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "apps/training/checkpoint.h"
#include "apps/training/evaluation.h"
#include "apps/training/run_config.h"
#include "apps/training/run_folder.h"

namespace norma {

enum class RunStatus { completed, diverged, interrupted, failed, failed_to_learn };
[[nodiscard]] std::string_view name_of(RunStatus status);

struct RunResult {
  RunStatus status = RunStatus::completed;
  std::int64_t steps = 0;
  double final_loss = 0;  // of the last step's batch
  double seconds = 0;
  std::optional<Evaluation> final;  // on the last evaluation's part
  std::int64_t final_step = 0;      // of that evaluation
  std::string reason;               // of a run that did not complete
};

// Writes summary.json: the result, the best evaluation, spike scores, lineage, versions and host.
// Throws Error, for instance on a full disk.
void write_summary(const RunFolder& folder, const RunConfig& config, const RunResult& result,
                   const TrainState& state, std::int64_t num_parameters);

}  // namespace norma
