// norma train CONFIG [--set KEY=VALUE]... [--out DIR] [--resume] [--init FILE] [--quiet]
#include "apps/cli/verb.h"
#include "apps/training/trainer.h"

namespace norma::cli {
namespace {

struct Arguments {
  std::string config;
  std::vector<std::string> sets;
  TrainOptions options;
};

// What does not fit together is a wrong configuration, whoever finds it.
std::unique_ptr<Trainer> make_trainer(const RunConfig& config, const TrainOptions& options) {
  try {
    return std::make_unique<Trainer>(config, options);
  } catch (const config::ConfigError&) {
    throw;
  } catch (const Error& e) {
    throw UsageError(e.what());
  }
}

Status train(const Arguments& arguments) {
  const RunConfig config = load_run_config(arguments.config, arguments.sets);
  const std::unique_ptr<Trainer> trainer = make_trainer(config, arguments.options);
  stop_on_signals();
  const RunResult result = trainer->run();
  const std::string& folder = trainer->folder().path();
  std::string line = fmt::format("{}: {} after {} steps in {}, training loss {:.4f}", folder,
                                 name_of(result.status), result.steps,
                                 duration_text(result.seconds), result.final_loss);
  if (result.final) {
    line += fmt::format(", {} loss {:.4f}", name_of(result.final->part), result.final->loss);
    line += shares_text(*result.final, ", ");
  }
  fmt::print("{}\n", line);
  if (result.status == RunStatus::diverged) {
    fmt::print(stderr,
               "diverged at {}; try a lower optimizer.lr, a longer warm-up or train.clip_norm\n",
               result.reason);
    return kDiverged;
  }
  if (result.status == RunStatus::interrupted) {
    fmt::print(stderr, "saved; go on with: norma train {}/config.json --out {} --resume\n", folder,
               folder);
    return kInterrupted;
  }
  return kDone;
}

}  // namespace

Action train_verb(Options& options) {
  const auto arguments = std::make_shared<Arguments>();
  options.add("CONFIG", arguments->config, "The configuration, a JSON file", {.required = true});
  options.add_sets(arguments->sets);
  options.add("--out", arguments->options.out, "Folder of the run (default: runs/<name>)");
  options.add_flag("--resume", arguments->options.resume,
                   "Go on where the run in the folder stopped");
  options.add("--init", arguments->options.init, "Start from the weights of a safetensors file");
  options.add_flag("--quiet", arguments->options.quiet, "No progress");
  return [arguments] { return train(*arguments); };
}

}  // namespace norma::cli
