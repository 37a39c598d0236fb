// What a study has a process for: a run of the plan, or a prefix of several.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "apps/study/plan.h"

namespace norma::study {

struct Task {
  const PlannedRun* run = nullptr;  // of the plan; of a prefix one of its runs
  std::string name;                 // "post, seed 1"
  std::string folder;
  std::int64_t steps = 0;        // 0: not known yet
  std::int64_t until = 0;        // of a prefix: the step that it ends with; else 0
  const Task* before = nullptr;  // the prefix that it goes on from
  bool done = false;

  [[nodiscard]] bool is_prefix() const { return until > 0; }
  [[nodiscard]] bool is_ready() const { return !before || before->done; }
};

// The tasks of a study in its folder, for runs of the plan by index that are not done: in this
// order, a prefix before the first run that has it. Prefixes that are trained already are `done`;
// those that are not, and that a single run would need, are left out. Without `share` there are
// none.
[[nodiscard]] std::list<Task> make_tasks(const Plan& plan, const std::vector<std::size_t>& runs,
                                         const std::string& folder, bool share,
                                         const std::string& fingerprint);

// The folder of a run, and that of all prefixes, in a study's.
[[nodiscard]] std::string run_folder(const std::string& study_folder, const PlannedRun& run);
[[nodiscard]] std::string prefixes_folder(const std::string& study_folder);

// True iff the task has begun, with this build of the program, and can go on.
[[nodiscard]] bool can_resume(const Task& task, const std::string& fingerprint);
// True iff a prefix has been trained to its end, with this build.
[[nodiscard]] bool is_trained(const Task& prefix, const std::string& fingerprint);

// Makes the task's folder ready, and returns the arguments for the program. With `resume`, what is
// in the folder is gone on from; else it starts from its prefix, where that was trained, or anew.
// Beside the folder are the configuration (.json) and the program's fingerprint (.program). Throws
// Error.
[[nodiscard]] std::vector<std::string> prepare(const Task& task, bool resume,
                                               const std::string& program,
                                               const std::string& fingerprint);

// What the task's process warned of, in its order. Empty where it has printed nothing.
[[nodiscard]] std::vector<std::string> warnings_of(const Task& task);

// Removes checkpoints that came with a prefix, or with an interruption, from the folder of a run
// that is done and wants none.
void leave_as_configured(const Task& task);

}  // namespace norma::study
