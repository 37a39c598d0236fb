// norma study FILE [--jobs N] [--out DIR] [--fresh] [--quiet]
#include "apps/study/study.h"

#include "apps/cli/study_options.h"
#include "apps/cli/verb.h"

namespace norma::cli {

Action study_verb(CLI::App& app) {
  struct Arguments {
    std::string file;
    study::StudyOptions options;
  };
  const auto arguments = std::make_shared<Arguments>();
  app.add_option("FILE", arguments->file, "The study, a JSON file")->required();
  app.add_option("--out", arguments->options.folder,
                 "Folder of the study (default: studies/<name>)");
  add_study_options(app, arguments->options);
  return [arguments] { return status_of(study::run_study(arguments->file, arguments->options)); };
}

}  // namespace norma::cli
