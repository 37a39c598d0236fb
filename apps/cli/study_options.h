// What the verbs that run studies share.
#pragma once

#include "apps/cli/verb.h"
#include "apps/study/study.h"

namespace norma::cli {

inline void add_study_options(CLI::App& app, study::StudyOptions& options) {
  app.add_option("--jobs", options.jobs, "Runs at a time, of one thread each (default: one a core)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  app.add_flag("--fresh", options.fresh, "Do all runs anew, even those that are done");
  app.add_flag("--quiet", options.quiet, "No progress");
}

inline Status status_of(study::StudyStatus status) {
  switch (status) {
    case study::StudyStatus::as_expected:
      return kDone;
    case study::StudyStatus::unexpected:
      return kFailed;
    default:
      return kInterrupted;
  }
}

}  // namespace norma::cli
