// What the verbs that run studies share.
#pragma once

#include "apps/cli/verb.h"
#include "apps/study/remote.h"
#include "apps/study/study.h"

namespace norma::cli {

inline void add_study_options(Options& options, study::StudyOptions& study) {
  options.add("--jobs", study.jobs, "Runs at a time, of one thread each (default: one a core)",
              {.value = "N", .low = 1, .high = 1024});
  options.add_flag("--fresh", study.fresh, "Do all runs anew, even those that are done");
  options.add_flag("--no-share", study.no_share,
                   "Train each run from its first step, even where runs begin alike");
  options.add_flag("--quiet", study.quiet, "No progress; warnings alone");
}

// Calls `run` with the ranks of mpirun, or none; ranks but the first work for it instead.
template <class F>
Status with_ranks(F&& run) {
  if (!study::Ranks::launched()) return run(nullptr);
  study::Ranks ranks;
  if (ranks.rank() > 0) {
    study::work(ranks);
    return kDone;
  }
  const struct Quit {
    study::Ranks& ranks;
    ~Quit() { study::quit(ranks); }
  } at_the_end{ranks};
  return run(&ranks);
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
