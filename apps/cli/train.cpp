// norma train CONFIG [--set KEY=VALUE]... [--out DIR] [--resume] [--init FILE] [--until STEP]
// [--quiet]
#include <filesystem>

#include "apps/cli/training.h"

namespace norma::cli {
namespace {

struct TrainArguments {
  std::string config;
  std::vector<std::string> sets;
  TrainOptions options;
};

}  // namespace

Action train_verb(Options& options) {
  const auto arguments = std::make_shared<TrainArguments>();
  options.add("CONFIG", arguments->config, "The configuration, a JSON file, or the folder of a run",
              {.required = true});
  options.add_sets(arguments->sets);
  options.add("--out", arguments->options.out, "Folder of the run (default: runs/<name>)");
  options.add_flag("--resume", arguments->options.resume,
                   "Go on where the run in the folder stopped");
  options.add("--init", arguments->options.init, "Start from the weights of a safetensors file");
  options.add("--until", arguments->options.until,
              "Save after this step and stop, as Ctrl-C does there; --resume goes on",
              {.value = "STEP", .low = 1, .high = 1e15});
  options.add_flag("--quiet", arguments->options.quiet, "No progress; warnings alone");
  return [arguments] {
    // A run by its folder goes on there.
    std::error_code none;
    if (arguments->options.resume && arguments->options.out.empty() &&
        std::filesystem::is_directory(arguments->config, none)) {
      arguments->options.out = arguments->config;
    }
    return train_and_report(load_run_config(arguments->config, arguments->sets),
                            arguments->options);
  };
}

}  // namespace norma::cli
