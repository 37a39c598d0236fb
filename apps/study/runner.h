// Runs a plan: each run is a process of its own, several at a time, and the ledger says what is
// done.
#pragma once

#include <string>
#include <vector>

#include "apps/study/plan.h"
#include "apps/study/ranks.h"
#include "apps/study/run_record.h"
#include "apps/study/task.h"

namespace norma::study {

struct RunnerOptions {
  std::string folder;   // of the study
  std::string program;  // empty: this program
  // Runs at a time; 0: the study's `jobs`, else one a core. With ranks: on each; 0: one.
  std::int64_t jobs = 0;
  bool quiet = false;
  bool share = true;       // train beginnings that runs have in common once (sharing.h)
  Ranks* ranks = nullptr;  // that take runs too (remote.h)
};

// Runs what the ledger in the folder does not have yet, in the plan's order. Returns true iff all
// runs have an entry now; false after Ctrl-C or SIGTERM, when the running ones were stopped. A run
// that fails or diverges is an entry like another; one that failed is done again the next time, as
// are all when the program has changed. Throws Error.
[[nodiscard]] bool run_plan(const Plan& plan, const RunnerOptions& options);

// What each run of the plan has left in the study's folder, in the order of plan.runs.
[[nodiscard]] std::vector<RunRecord> read_results(const Plan& plan, const std::string& folder);

}  // namespace norma::study
