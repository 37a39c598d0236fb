// The progress of a study on stderr: a line a running run on a terminal, plain lines elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

namespace norma::study {

// How far a running run is.
struct RunProgress {
  std::string name;  // "post, seed 1"
  std::int64_t step = 0;
  std::int64_t steps = 0;  // 0: not known
  double loss = 0;
  double seconds = 0;  // since the run began
};

class Live {
 public:
  // `total` runs, of which `done` are done. `quiet`: shows warnings alone.
  Live(std::size_t total, std::size_t done, bool quiet);
  ~Live();
  Live(const Live&) = delete;
  Live& operator=(const Live&) = delete;

  // Shows the running runs, now and then.
  void update(const std::vector<RunProgress>& running);
  // A run has ended: a line that stays. `counts`: it is one of the total.
  void ended(const std::string& line, bool counts);
  // A line that stays.
  void note(const std::string& line);
  // The same for a run's warning, even if quiet. A text that one run has warned of is not shown
  // again for another.
  void warn(const std::string& run, const std::string& text);

 private:
  void print(const std::string& line);
  void clear();
  [[nodiscard]] double seconds() const;
  [[nodiscard]] std::string overall(const std::vector<RunProgress>& running) const;

  std::size_t total_, done_, done_before_;
  bool quiet_, terminal_;
  int lines_ = 0;  // live lines on the screen
  std::chrono::steady_clock::time_point start_, shown_;
  std::set<std::string> warned_;
};

// One line of a running run, no wider than `width`.
[[nodiscard]] std::string progress_line(const RunProgress& run, std::size_t name_width,
                                        std::size_t width);

// The newest record of a metrics.jsonl that is being written: reads what was added since.
class MetricsTail {
 public:
  explicit MetricsTail(std::string path) : path_(std::move(path)) {}
  // Brings step and loss up to date; leaves them where nothing was added.
  void read(RunProgress& progress);

 private:
  std::string path_;
  std::int64_t at_ = 0;  // bytes of whole lines that were read
};

}  // namespace norma::study
