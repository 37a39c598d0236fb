#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "apps/cli/verb.h"
#include "apps/training/run_config.h"

namespace norma::cli {

Action validate_verb(Options& options) {
  struct Given {
    std::vector<std::string> files, sets;
    bool resolved = false;
  };
  const auto given = std::make_shared<Given>();
  options.add("CONFIG", given->files, "Configuration files", {.required = true});
  options.add_sets(given->sets);
  options.add_flag("--resolved", given->resolved, "Print each with all defaults filled in");
  return [given] {
    Status status = kDone;
    for (const std::string& file : given->files) {
      try {
        const config::Json json = config::to_json(load_run_config(file, given->sets));
        if (given->resolved) {
          fmt::print("{}\n", json.dump(2));
        } else {
          fmt::print("{}: valid, hash {}\n", file, config::hash(json));
        }
      } catch (const config::ConfigError& e) {
        fmt::print(stderr, "{}\n", e.what());
        status = kUsage;
      }
    }
    return status;
  };
}

}  // namespace norma::cli
