#include "apps/cli/training.h"

namespace norma::cli {

Status train_and_report(const RunConfig& config, const TrainOptions& options) {
  const auto trainer = of_configuration([&] { return std::make_unique<Trainer>(config, options); });
  const std::string& folder = trainer->folder().path();
  if (const std::string usual = "runs/" + config.name;
      options.out.empty() && !options.resume && folder != usual) {
    fmt::print(stderr, "{} is taken by another run; this one goes to {}\n", usual, folder);
  }
  stop_on_signals();
  const RunResult result = trainer->run();
  std::string line = fmt::format("{}: {} after {} steps in {}, training loss {:.4f}", folder,
                                 name_of(result.status), result.steps,
                                 duration_text(result.seconds), result.final_loss);
  if (result.final) {
    line += fmt::format(", {} loss {:.4f}", name_of(result.final->part), result.final->loss);
    line += shares_text(*result.final, ", ");
    if (result.final_step != result.steps) {
      line += fmt::format(" (evaluated at step {})", result.final_step);
    }
  }
  fmt::print("{}\n", line);
  if (result.status == RunStatus::diverged) {
    fmt::print(stderr,
               "diverged at {}\n`norma replay {}` tells whether it is the dynamics or rounding; "
               "try a lower optimizer.lr, a longer warm-up or train.clip_norm\n",
               result.reason, folder);
    return kDiverged;
  }
  if (result.status == RunStatus::failed_to_learn) {
    fmt::print(stderr, "{}\n", result.reason);
    return kDiverged;
  }
  if (result.status == RunStatus::interrupted) {
    fmt::print(stderr, "saved; go on with: norma train {} --resume\n", folder);
    return result.steps == options.until ? kDone : kInterrupted;
  }
  return kDone;
}

}  // namespace norma::cli
