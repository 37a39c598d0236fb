// What a finished run left behind, as studies and reports read it.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "apps/training/probe.h"

namespace norma::study {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

struct TrainPoint {
  std::int64_t step = 0;
  double loss = kMissing;
  double lr = kMissing;
  double grad_norm = kMissing;
  double largest_logit = kMissing;  // of the attention; with train.log_logits
};

struct EvalPoint {
  std::int64_t step = 0;
  std::string split;
  double loss = kMissing;
  std::optional<double> accuracy;
};

// How a run ended. A diverged run is a result, and so is one that failed to learn and was stopped;
// the others are the lack of one.
enum class Outcome { completed, diverged, failed_to_learn, failed, interrupted, missing };
[[nodiscard]] constexpr bool is_result(Outcome outcome) { return outcome < Outcome::failed; }
[[nodiscard]] const char* name_of(Outcome outcome);
// The inverse; an unknown name is `missing`.
[[nodiscard]] Outcome outcome_of(const std::string& name);

// What a probe found; see Note [Names of probe values].
struct ProbePoint {
  std::int64_t step = 0;
  ProbeValues values;
};

struct RunRecord {
  Outcome outcome = Outcome::missing;
  std::string reason;  // of a run that did not complete
  std::vector<TrainPoint> train;
  std::vector<EvalPoint> evaluations;
  std::vector<ProbePoint> probes;
  double seconds = kMissing;
  // Share of the values far from those before them, in percent; see apps/training/spike_score.h.
  double loss_spikes = kMissing, gradient_spikes = kMissing;
};

// Reads summary.json and metrics.jsonl of a run's folder. Without a summary the outcome is
// `missing`, and the records are what there is so far. Throws Error on a file that is damaged.
[[nodiscard]] RunRecord read_run(const std::string& folder);

}  // namespace norma::study
