#include "apps/training/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace norma {
namespace {

constexpr double kLiveEvery = 0.1;   // seconds between two live lines
constexpr double kPlainEvery = 5.0;  // seconds between two plain lines

double since(std::chrono::steady_clock::time_point t) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - t).count();
}

}  // namespace

std::string duration_text(double seconds) {
  constexpr double kMost = 1e9;  // thirty years; NaN and what no integer holds end here as well
  if (!(seconds >= 0 && seconds < kMost)) return "?";
  const auto s = static_cast<std::int64_t>(seconds + 0.5);
  if (s >= 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{}:{:02}", s / 60, s % 60);
}

Progress::Progress(std::string name, std::int64_t total_steps, std::int64_t first_step, bool quiet)
    : name_(std::move(name)),
      total_(total_steps),
      first_(first_step),
      quiet_(quiet),
      terminal_(::isatty(STDERR_FILENO) == 1),
      start_(std::chrono::steady_clock::now()),
      shown_(start_) {}

Progress::~Progress() { clear_line(); }

void Progress::finish() {
  clear_line();
  std::fflush(stderr);
}

double Progress::seconds() const { return since(start_); }

void Progress::clear_line() {
  if (!line_shown_) return;
  std::fputs("\r\033[K", stderr);
  line_shown_ = false;
}

void Progress::update(std::int64_t step, double loss, double lr) {
  if (quiet_) return;
  const bool last = step == total_;
  if (!last && since(shown_) < (terminal_ ? kLiveEvery : kPlainEvery)) return;
  shown_ = std::chrono::steady_clock::now();
  const double per_step = seconds() / static_cast<double>(std::max<std::int64_t>(1, step - first_));
  const std::string line = fmt::format(
      "{}  step {}/{}  loss {:.4f}  lr {:.3g}  {:.1f} steps/s  {} left", name_, step, total_, loss,
      lr, 1 / per_step, duration_text(per_step * static_cast<double>(total_ - step)));
  if (terminal_) {
    std::fprintf(stderr, "\r\033[K%s", line.c_str());
    line_shown_ = true;
  } else {
    std::fprintf(stderr, "%s\n", line.c_str());
  }
  std::fflush(stderr);
}

void print_warning(const std::string& text) {
  fmt::print(stderr, "{}{}\n", kWarning, text);
  std::fflush(stderr);
}

void Progress::note(const std::string& text) {
  if (!quiet_) print(text);
}

void Progress::warn(const std::string& text) {
  if (!quiet_) clear_line();
  print_warning(text);
}

void Progress::print(const std::string& line) {
  if (!quiet_) clear_line();
  std::fprintf(stderr, "%s\n", line.c_str());
  std::fflush(stderr);
}

}  // namespace norma
