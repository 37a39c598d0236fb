// One workload, timed in this process.
#pragma once

#include "apps/bench/result.h"
#include "apps/bench/workloads.h"

namespace norma::bench {

// Three steps to warm up, then steps for `seconds`, at least five. A step: forget the gradients,
// forward, mean cross-entropy, backward, clipping where the workload has it, AdamW (rate 1e-4,
// decay 0.01 on everything), and the loss as a number. Random data of a fixed seed.
[[nodiscard]] Result measure(const Workload& workload, double seconds);

}  // namespace norma::bench
