// norma explain CONFIG [--set KEY=VALUE]...
#include "apps/training/explain.h"
#include "apps/cli/verb.h"

namespace norma::cli {

Action explain_verb(Options& options) {
  const auto path = std::make_shared<std::string>();
  const auto sets = std::make_shared<std::vector<std::string>>();
  options.add("CONFIG", *path, "The configuration, a JSON file, or the folder of a run",
              {.required = true});
  options.add_sets(*sets);
  return [path, sets] {
    fmt::print("{}", of_configuration([&] { return explain(load_run_config(*path, *sets)); }));
    return kDone;
  };
}

}  // namespace norma::cli
