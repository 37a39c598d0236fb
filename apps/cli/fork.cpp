// norma fork RUN --at STEP [--set KEY=VALUE]... [--out DIR] [--quiet]
#include "apps/cli/training.h"

namespace norma::cli {
namespace {

struct ForkArguments {
  std::string run;
  std::int64_t step = 0;
  std::vector<std::string> sets;
  TrainOptions options;
};

Status fork_run(const ForkArguments& arguments) {
  const RunFolder parent = RunFolder::open(arguments.run);
  RunConfig config = load_run_config(parent.config_path(), arguments.sets);
  if (config.name == load_run_config(parent.config_path()).name) {
    config.name += fmt::format("-at-{}", arguments.step);
  }
  TrainOptions options = arguments.options;
  options.fork = ForkPoint{parent.path(), arguments.step};
  return train_and_report(config, options);
}

}  // namespace

Action fork_verb(Options& options) {
  const auto arguments = std::make_shared<ForkArguments>();
  options.add("RUN", arguments->run, "Folder of the run to go on from", {.required = true});
  options.add("--at", arguments->step, "Step of one of its checkpoints", {.required = true});
  options.add_sets(arguments->sets);
  options.add("--out", arguments->options.out,
              "Folder of the new run (default: runs/<name>-at-<step>)");
  options.add_flag("--quiet", arguments->options.quiet, "No progress; warnings alone");
  return [arguments] { return fork_run(*arguments); };
}

}  // namespace norma::cli
