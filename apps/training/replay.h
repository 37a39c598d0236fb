// The last steps of a run that diverged, once more in f64: was it the dynamics, or rounding?
//
// Note [Dynamics or rounding]. In f64 the same steps, from the same kept state and over the same
// batches, make errors some 10^9 times smaller, and have room up to 10^308. If the trouble comes
// back there, it belongs to what is computed (a rate too high, a derivative that does not exist):
// the dynamics. If it does not, the run's precision has made it, by rounding or by the end of its
// range. A run that has blown up leaves the range of f32 but not yet that of f64, so "comes back"
// means more than "is not finite" in f64: a loss ten times above those before, or anything that f32
// could not hold.
//
// A run that sat at the level of guessing is trained again in f64 from its beginning (given weights
// or a fork: from the oldest checkpoint there is), since a state that is stuck stays so in any
// precision.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "apps/training/failure.h"
#include "apps/training/run_config.h"
#include "apps/training/run_folder.h"

namespace norma {

// One repeated step, in the run's precision and in f64.
struct ReplayedStep {
  std::int64_t step = 0;  // counted from 1
  double loss = 0, grad_norm = 0;
  double loss_f64 = 0, grad_norm_f64 = 0;
};

struct ReplayResult {
  Failure failure;
  std::int64_t from_step = 0;  // steps done before the first one repeated
  bool fails_again = false;
  std::string what;  // how it failed in f64, or that it did not
};

// Repeats the steps and calls `show` with each. Throws Error if the run has kept no failure.
[[nodiscard]] ReplayResult replay(const RunFolder& run,
                                  const std::function<void(const ReplayedStep&)>& show);

}  // namespace norma
