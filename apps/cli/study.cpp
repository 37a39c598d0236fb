// norma study FILE [--set KEY=VALUE]... [--jobs N] [--out DIR] [--fresh] [--quiet]
#include "apps/study/study.h"

#include "apps/cli/study_options.h"
#include "apps/cli/verb.h"

namespace norma::cli {

Action study_verb(Options& options) {
  struct StudyArguments {
    std::string file;
    study::StudyOptions options;
  };
  const auto arguments = std::make_shared<StudyArguments>();
  options.add("FILE", arguments->file, "The study, a JSON file, or its folder", {.required = true});
  options.add_sets(arguments->options.sets);
  options.add("--out", arguments->options.folder, "Folder of the study (default: studies/<name>)");
  add_study_options(options, arguments->options);
  return [arguments] {
    // A study by its folder goes on there.
    if (arguments->options.folder.empty() && study::is_study(arguments->file)) {
      arguments->options.folder = arguments->file;
    }
    return with_ranks([&](study::Ranks* ranks) {
      arguments->options.ranks = ranks;
      return status_of(study::run_study(arguments->file, arguments->options));
    });
  };
}

}  // namespace norma::cli
