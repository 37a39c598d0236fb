// What a study runs: the arms, and a run for each arm and seed, with its whole configuration.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/study/expression.h"
#include "apps/study/figure_plan.h"
#include "apps/study/study_config.h"

namespace norma::study {

struct Arm {
  std::string name;
  std::string named;  // the part of it before the factors; may be empty
  Json settings;      // by dotted key, what it changes
  // The values of the factors alone: "lr=0.01".
  std::string levels = {};
  // Index of the arm that it is compared with.
  std::size_t reference = 0;
};

struct PlannedRun {
  std::size_t arm = 0;     // index into Plan::arms
  std::size_t seed = 0;    // index into Plan::seeds
  std::string id;          // "post-seed-0-1a2b3c4d": the name of its folder below runs/
  Json config;             // whole, with all defaults
  std::string hash;        // of the configuration
  std::int64_t steps = 0;  // 0: given in epochs, not known yet
};

struct CompiledClaim {
  ClaimConfig config;
  Expression expression;
};

struct Floor {
  std::string label;
  double value = 0;
};

struct Plan {
  StudyConfig config;
  std::vector<Arm> arms;
  std::vector<std::int64_t> seeds;
  std::string reference;  // what arms are compared with, as tables call it
  // The first seed of all arms first, so that a picture of the whole stands early.
  std::vector<PlannedRun> runs;
  std::vector<CompiledClaim> claims;
  std::vector<Floor> floors;
  // By name; "nan" is infinite, as the loss of a diverged run is.
  std::map<std::string, PublishedTable, std::less<>> published;
  std::vector<PlannedFigure> figures;

  // The run of an arm and a seed, by index.
  [[nodiscard]] const PlannedRun& run(std::size_t arm, std::size_t seed) const {
    return runs[seed * arms.size() + arm];
  }
};

// Makes every configuration and compiles every claim. Throws ConfigError with all that is wrong:
// the keys of an arm, the claims' expressions, published values of no arm.
[[nodiscard]] Plan make_plan(const StudyConfig& study);

// A factor's value in an arm's name: "lr=0.01".
[[nodiscard]] std::string level_name(const std::string& key, const Json& value);

// The value at a dotted path; null if there is none.
[[nodiscard]] const Json* at_path(const Json& json, const std::string& path);

// Small letters, digits and single hyphens: a name as a part of a path.
[[nodiscard]] std::string slug(std::string_view name);

}  // namespace norma::study
