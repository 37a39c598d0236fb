#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "apps/cli/verb.h"
#include "apps/study/plan.h"
#include "apps/training/trainer.h"

namespace norma::cli {
namespace {

struct ValidateArguments {
  std::vector<std::string> files, sets;
  bool resolved = false, form_only = false;
};

void validate_study(const std::string& file) {
  const study::Plan plan = study::make_plan(study::load_study(file));
  fmt::print("{}: a valid study of {} arms and {} seeds\n", file, plan.arms.size(),
             plan.seeds.size());
}

void validate_run(const std::string& file, const ValidateArguments& arguments) {
  const RunConfig run = load_run_config(file, arguments.sets);
  const config::Json json = config::to_json(run);
  // A trainer is built of all parts of a run, and refuses what does not fit.
  if (!arguments.form_only) (void)Trainer(run, {.dry = true});
  if (arguments.resolved) {
    fmt::print("{}\n", json.dump(2));
  } else {
    fmt::print("{}: valid, hash {}\n", file, config::hash(json));
  }
}

}  // namespace

Action validate_verb(Options& options) {
  const auto arguments = std::make_shared<ValidateArguments>();
  options.add("CONFIG", arguments->files,
              "Configurations or studies: JSON files, or folders of runs or studies",
              {.required = true});
  options.add_sets(arguments->sets);
  options.add_flag("--resolved", arguments->resolved, "Print each with all defaults filled in");
  options.add_flag("--form", arguments->form_only,
                   "The form alone: read no data, and build no model");
  return [arguments] {
    Status status = kDone;
    for (const std::string& file : arguments->files) {
      try {
        const config::Json json = config::load_json(configuration_file(file));
        if (is_schema(json)) {
          fmt::print(stderr,
                     "note: {}: the JSON Schema that editors check configurations with, and no "
                     "configuration; passed over\n",
                     file);
        } else if (!study_key(json).empty()) {
          validate_study(file);
        } else {
          validate_run(file, *arguments);
        }
      } catch (const config::ConfigError& e) {
        fmt::print(stderr, "{}\n", e.what());
        status = kUsage;
      } catch (const Error& e) {
        fmt::print(stderr, "{}: {}\n", file, e.what());
        status = kUsage;
      }
    }
    return status;
  };
}

}  // namespace norma::cli
