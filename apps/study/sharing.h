// Beginnings that several runs have in common, so that they are trained once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/study/plan.h"

namespace norma::study {

// The first `steps` steps of some runs.
struct Prefix {
  std::string id;                     // "1a2b3c4d-120": the name of its folder
  std::size_t run = 0;                // one of them, by index into Plan::runs
  std::int64_t steps = 0;             // optimizer steps
  std::size_t runs = 0;               // how many have it
  std::optional<std::size_t> before;  // the shorter prefix that it goes on from
};

struct Sharing {
  std::vector<Prefix> prefixes;  // each behind the one that it goes on from
  // The longest prefix of each run of the plan.
  std::vector<std::optional<std::size_t>> of_run;
};

// Runs share their beginning iff their configurations agree but for the name, the schedule and
// train.steps, and their schedules give the same rates, bit by bit, up to some step, which is at
// least a fifth of the longest of them beyond the prefix before. Runs given in epochs or with a
// warm-up in tokens share nothing: their rates are not known without their data.
[[nodiscard]] Sharing share_prefixes(const Plan& plan);

}  // namespace norma::study
