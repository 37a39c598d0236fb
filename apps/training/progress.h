// The progress of a run on stderr: one live line on a terminal, plain lines elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace norma {

// How the line of a warning begins on stderr; a study finds those of its runs by it.
inline constexpr std::string_view kWarning = "warning: ";
void print_warning(const std::string& text);

class Progress {
 public:
  // `quiet`: shows warnings alone.
  Progress(std::string name, std::int64_t total_steps, std::int64_t first_step, bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Shows steps, loss, rate and the time left, now and then.
  void update(std::int64_t step, double loss, double lr);
  // A line of its own: an evaluation, a warning.
  void note(const std::string& text);
  // The same for what must be seen though it be quiet.
  void warn(const std::string& text);
  // Takes the line away that update() shows: what is printed next begins a line of its own.
  void finish();
  // Seconds since the run began here.
  [[nodiscard]] double seconds() const;

 private:
  void clear_line();
  void print(const std::string& line);

  std::string name_;
  std::int64_t total_, first_;
  bool quiet_, terminal_;
  bool line_shown_ = false;
  std::chrono::steady_clock::time_point start_, shown_;
};

// "1:05", "2:03:10"; "?" for what is no duration.
[[nodiscard]] std::string duration_text(double seconds);

}  // namespace norma
