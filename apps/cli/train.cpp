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

// The folder of a run that is given as such, or by its config.json; empty for anything else.
std::string run_of(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code none;
  if (fs::is_directory(path, none))
    return fs::exists(fs::path(path) / "config.json", none) ? path : "";
  const fs::path folder = fs::path(path).parent_path();
  const bool kept = fs::path(path).filename() == "config.json" && !folder.empty() &&
                    fs::is_directory(folder / "checkpoints", none);
  return kept ? folder.string() : "";
}

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
    // A run by its folder, or by the configuration in it, goes on there.
    if (const std::string folder = run_of(arguments->config); !folder.empty()) {
      if (arguments->options.resume && arguments->options.out.empty()) {
        arguments->options.out = folder;
      } else if (!arguments->options.resume && folder == arguments->config) {
        throw UsageError(fmt::format(
            "{0}: is the folder of a run; `norma train {0} --resume` goes on with it, `norma train "
            "{0}/config.json` starts another like it",
            folder));
      }
    }
    return train_and_report(load_run_config(arguments->config, arguments->sets),
                            arguments->options);
  };
}

}  // namespace norma::cli
