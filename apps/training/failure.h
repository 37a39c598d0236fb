// What a run that diverged leaves behind, so that its last steps can be repeated.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "apps/training/checkpoint.h"

namespace norma {

// not_finite: updates were left out, since loss or gradient was not finite.
// guessing: the loss sat at the level of guessing.
enum class FailureKind { not_finite, guessing };

struct Failure {
  FailureKind kind = FailureKind::not_finite;
  std::int64_t step = 0;  // the last one of the run, counted from 1
  std::string reason;     // what the run said
  double guessing = 0;    // the level of guessing; 0 where there is none
};

// Note [Kept state]. A run keeps in memory a copy of all that its next step depends on, and renews
// it every 16 steps as long as all is well: the last update not left out, and its loss not above
// twice the mean of the last ten. So the copy is of a moment shortly before the trouble. When the
// run diverges, the copy goes to RUN/failure. The batches since need not be kept: they are
// functions of the seed and the step.
class KeptState {
 public:
  static constexpr std::int64_t kEvery = 16;

  // True iff it is time to renew the copy: `step` steps have been done, and `state` tells how.
  [[nodiscard]] bool is_due(std::int64_t step, const TrainState& state) const;
  void keep(const TrainState& state, const Learner& learner);
  [[nodiscard]] bool empty() const { return empty_; }
  [[nodiscard]] const TrainState& state() const { return state_; }
  [[nodiscard]] const TensorFiles& files() const { return files_; }

 private:
  bool empty_ = true;
  TrainState state_;
  TensorFiles files_;
};

// Writes RUN/failure: a checkpoint of the kept state, and failure.json. What stood there is gone.
// Throws Error, for instance on a full disk.
void write_failure(const RunFolder& run, const Failure& failure, const KeptState& kept,
                   const Json& config);

struct KeptFailure {
  Failure failure;
  Checkpoint before;  // the kept state
};
// Throws Error if the run has not diverged, or what it left is damaged.
[[nodiscard]] KeptFailure read_failure(const RunFolder& run);

}  // namespace norma
