// norma evaluate RUN [--step STEP]
#include "apps/cli/verb.h"
#include "apps/training/evaluation.h"
#include "apps/training/finished_run.h"

namespace norma::cli {

Action evaluate_verb(Options& options) {
  const auto folder = std::make_shared<std::string>();
  const auto step = std::make_shared<std::int64_t>(0);
  options.add("RUN", *folder, "Folder of a run", {.required = true});
  options.add_step(*step);
  return [folder, step] {
    FinishedRun run(*folder, *step);
    fmt::print("{}: checkpoint of step {}\n", *folder, run.step());
    for (Part part : {Part::validation, Part::test}) {
      if (run.data().size(part) == 0) continue;
      const Evaluation e =
          evaluate(run.model(), run.data(), part, run.config().loss, run.config().train.batch);
      fmt::print("{:<10}  loss {:.6f}{}  ({} targets)\n", name_of(part), e.loss, shares_text(e),
                 e.count);
    }
    return kDone;
  };
}

}  // namespace norma::cli
