// A task's process while it runs.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "apps/study/child_process.h"
#include "apps/study/live.h"

namespace norma::study {

// How often jobs are asked for their end, and ranks for messages.
constexpr auto kPollEvery = std::chrono::milliseconds(20);

class Job {
 public:
  static constexpr int kLost = -1000;  // the status of one of which nothing more is heard
  virtual ~Job() = default;            // ends it, if it still runs
  // Its exit status once it has ended, as ChildProcess has it. Brings the progress up to date.
  virtual std::optional<int> poll(RunProgress& progress) = 0;
  // Asks it to save and end.
  virtual void stop() = 0;
};

// A process of this machine. What it prints goes to `folder`.log.
class LocalJob final : public Job {
 public:
  LocalJob(const std::vector<std::string>& arguments, const std::string& folder);
  std::optional<int> poll(RunProgress& progress) override;
  void stop() override;

 private:
  ChildProcess process_;
  MetricsTail tail_;
};

}  // namespace norma::study
