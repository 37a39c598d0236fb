// norma replay RUN
#include "apps/training/replay.h"

#include "apps/cli/verb.h"

namespace norma::cli {
namespace {

constexpr std::int64_t kMostLines = 20;

Status replay_run(const std::string& folder) {
  const RunFolder run = RunFolder::open(folder);
  const KeptFailure kept = read_failure(run);
  const bool stuck = kept.failure.kind == FailureKind::guessing;
  fmt::print("{}: diverged at {}\n", folder, kept.failure.reason);
  // A long repetition is shown now and then.
  const std::int64_t every = stuck ? std::max<std::int64_t>(1, kept.failure.step / kMostLines) : 1;
  if (stuck) {
    fmt::print("{:>8} {:>14} {:>14}\n", "step", "loss, f64", "gradient, f64");
  } else {
    fmt::print("{:>8} {:>14} {:>14} {:>14} {:>14}\n", "step", "loss", "gradient", "loss, f64",
               "gradient, f64");
  }
  const ReplayResult result = replay(run, [&](const ReplayedStep& s) {
    if (s.step % every != 0 && s.step != kept.failure.step) return;
    fmt::print("{:>8} ", s.step);
    if (!stuck) fmt::print("{:>14.6g} {:>14.6g} ", s.loss, unsigned_nan(s.grad_norm));
    fmt::print("{:>14.6g} {:>14.6g}\n", s.loss_f64, unsigned_nan(s.grad_norm_f64));
  });
  fmt::print("In f64, from step {} on, {}.\n", result.from_step,
             result.fails_again ? "it fails as well" : "it does not fail");
  fmt::print("{}.\n", result.what);
  fmt::print("{}\n",
             !result.fails_again
                 ? "It is rounding, or the range of the run's precision: train.precision f32 or "
                   "f64, or smaller values (norms, scales)."
             : stuck ? "It is the dynamics: another rate or warm-up, norm, placement or start."
                     : "It is the dynamics: lower optimizer.lr, warm up longer, clip, or another "
                       "norm or placement.");
  return kDone;
}

}  // namespace

Action replay_verb(Options& options) {
  const auto folder = std::make_shared<std::string>();
  options.add("RUN", *folder, "Folder of a run that diverged", {.required = true});
  return [folder] { return replay_run(*folder); };
}

}  // namespace norma::cli
