// A whole run: what `norma train CONFIG` reads.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "apps/data/data_sets.h"
#include "apps/training/train_config.h"
#include "core/config/config.h"
#include "layers/losses.h"
#include "models/models.h"
#include "optim/optimizers.h"
#include "optim/schedules.h"

namespace norma {

struct RunConfig {
  std::string name = "run";
  std::int64_t seed = 0;
  DataConfig data;
  ModelConfig model;
  LossConfig loss;
  OptimizerConfig optimizer = AdamWConfig{};
  ScheduleConfig schedule;
  TrainConfig train;

  static config::Fields fields();
  // What the sections must agree in.
  void check(config::Problems& problems, const std::string& path) const;
};

// Makes the paths of files under `data` whole: one that does not begin at the root is taken from
// `folder`. So a path in a configuration is relative to its file, and what a run keeps holds in any
// folder.
void resolve_paths(config::Json& run, const std::string& folder);
// True iff the file is a JSON Schema, as configs/schema.json is: by its parts, since load_json()
// takes "$schema" out, which configurations have too.
[[nodiscard]] bool is_schema(const config::Json& file);
// The JSON file that is meant: of the folder of a run its config.json, of a study's its study.json,
// else the path itself. Throws config::ConfigError for any other folder.
[[nodiscard]] std::string configuration_file(const std::string& path);
// The key that shows a file to be meant as a study: one that only studies have, where there is no
// model. Empty for the configuration of a run.
[[nodiscard]] std::string study_key(const config::Json& file);
// Reads a configuration file (or that of a run's folder) with all that it extends, applies
// KEY=VALUE changes (with paths from the current folder), and checks the whole. Throws
// config::ConfigError with every problem.
[[nodiscard]] RunConfig load_run_config(const std::string& given,
                                        std::span<const std::string> sets = {});
// Likewise from JSON, for instance of a run folder's config.json; `source` is
// named in errors.
[[nodiscard]] RunConfig parse_run_config(const config::Json& json, const std::string& source = {});
// Likewise from a file's JSON and KEY=VALUE changes; what these make wrong is told as theirs.
[[nodiscard]] RunConfig parse_run_config(const config::Json& file,
                                         std::span<const std::string> sets,
                                         const std::string& source);

// The JSON Schema of configs/schema.json, as the file's text.
[[nodiscard]] std::string run_config_schema();
// The documentation of every key: docs/config.md.
[[nodiscard]] std::string run_config_markdown();

}  // namespace norma
