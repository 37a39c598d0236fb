// Jobs on other ranks: rank 0 sends a task's folder and arguments, the rank runs the process, and
// sends the folder back. No file system needs to be shared, but for data files.
//
// Messages are a line of JSON, and behind it the files of a run. To a rank: {"do": "run", "job",
// "arguments"} with files, {"do": "stop", "job"}, {"do": "tell"}, {"do": "quit"}. From a rank:
// {"is": "here", "program"} when it is asked to tell, {"is": "at work"} once a second, {"is":
// "progress", "job", "step", "loss"},
// {"is": "ended", "job", "status"} with files, {"is": "failed", "job", "reason"}.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "apps/study/job.h"
#include "apps/study/ranks.h"

namespace norma::study {

class RemoteJobs {
 public:
  // Up to `jobs` at a time on each rank but 0.
  RemoteJobs(Ranks& ranks, std::int64_t jobs, std::string fingerprint);

  // True iff a rank can take one more.
  [[nodiscard]] bool have_room() const;
  // Arguments as prepare() gives them for the folder.
  [[nodiscard]] std::unique_ptr<Job> start(const std::vector<std::string>& arguments,
                                           const std::string& folder);
  // Takes what has come. A rank that has said nothing for long counts as lost, and its jobs end
  // with Job::kLost. Throws Error if a rank runs another build of the program.
  void update();

 private:
  class RemoteJob;
  struct State;  // of a job
  struct Worker {
    bool here = false;
    bool lost = false;
    std::int64_t running = 0;
    std::chrono::steady_clock::time_point heard;
  };
  [[nodiscard]] int free_rank() const;  // 0: none
  void take(const Message& message);

  Ranks& ranks_;
  std::int64_t jobs_;
  std::string fingerprint_;
  std::vector<Worker> workers_;  // by rank; the first is not used
  std::map<std::int64_t, std::shared_ptr<State>> running_;
  std::int64_t next_ = 1;
};

// What a rank but 0 does: runs what it is sent, until it is told to quit.
void work(Ranks& ranks);
// Tells all others to.
void quit(Ranks& ranks);

}  // namespace norma::study
