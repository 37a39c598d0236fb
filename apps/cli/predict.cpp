// norma predict RUN INPUT [--step STEP]
#include <fmt/format.h>

#include "apps/cli/verb.h"
#include "apps/data/csv.h"
#include "apps/training/build.h"
#include "apps/training/prediction.h"
#include "apps/training/progress.h"

namespace norma::cli {
namespace {

struct PredictArguments {
  std::string run, input;
  std::int64_t step = 0;
};

Status predict_file(const PredictArguments& arguments) {
  FinishedRun run(arguments.run, arguments.step);
  const std::vector<Prediction> predictions =
      predict(run, read_inputs(run.record(), arguments.input));
  if (const std::string warning = output_warning(run.model().output().shape, run.spec());
      !warning.empty()) {
    print_warning(warning);
  }
  const std::string& target = run.record().target_column;
  const bool classes = run.record().classes > 0;
  fmt::print("{}{}\n", csv_field(target.empty() ? (classes ? "class" : "value") : target),
             classes ? ",probability" : "");
  for (const Prediction& p : predictions) {
    fmt::print("{}{}\n", csv_field(p.value), classes ? fmt::format(",{:.6f}", p.probability) : "");
  }
  return kDone;
}

}  // namespace

Action predict_verb(Options& options) {
  const auto arguments = std::make_shared<PredictArguments>();
  options.add("RUN", arguments->run, "Folder of a run on arrays of numbers", {.required = true});
  options.add("INPUT", arguments->input, "CSV or IDX file with the samples", {.required = true});
  options.add_step(arguments->step);
  return [arguments] { return predict_file(*arguments); };
}

}  // namespace norma::cli
