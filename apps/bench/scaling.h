// How a step's cost grows: with threads, with depth, with the batch; and what a run costs before
// its first step.
#pragma once

#include <span>
#include <string>

#include "apps/bench/compare.h"

namespace norma::bench {

// What the second thread gains beside what it gains on matrix products (>= 0.92 of it), and what
// more threads than cores lose (<= 10 %), on the workloads of `rows` whose step takes above 5 ms.
[[nodiscard]] std::string thread_table(std::span<const Comparison> rows, double seconds);

// Steps at four depths and four batches: how far they lie off the line through the first and the
// last (<= 10 %).
[[nodiscard]] std::string growth_table(double seconds);

// Training runs in processes of their own: 1,000 blocks with DeepNorm for 20 steps, and the time
// from the call to the end of the first step of the first study's model (<= 0.2 s).
[[nodiscard]] std::string run_table();

}  // namespace norma::bench
