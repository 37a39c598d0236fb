#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "apps/cli/verb.h"
#include "apps/training/run_config.h"

namespace norma::cli {

Action validate_verb(CLI::App& app) {
  struct Options {
    std::vector<std::string> files, sets;
    bool resolved = false;
  };
  const auto options = std::make_shared<Options>();
  app.add_option("CONFIG", options->files, "Configuration files")->required();
  add_sets(app, options->sets);
  app.add_flag("--resolved", options->resolved, "Print each with all defaults filled in");
  return [options] {
    Status status = kDone;
    for (const std::string& file : options->files) {
      try {
        const config::Json json = config::to_json(load_run_config(file, options->sets));
        if (options->resolved) {
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
