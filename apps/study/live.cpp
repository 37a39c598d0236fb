#include "apps/study/live.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/training/progress.h"
#include "apps/training/run_folder.h"
#include "core/file.h"

namespace norma::study {
namespace {

constexpr double kLiveEvery = 0.2;     // seconds between two pictures on a terminal
constexpr double kPlainEvery = 10.0;   // seconds between two plain lines
constexpr std::size_t kBarWidth = 20;  // letters
constexpr std::size_t kNarrow = 40;    // letters of a terminal that says nothing useful
constexpr std::size_t kUsual = 100;

double since(std::chrono::steady_clock::time_point t) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - t).count();
}

std::size_t terminal_width() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < kNarrow) return kUsual;
  return size.ws_col - 1;
}

}  // namespace

std::string progress_line(const RunProgress& run, std::size_t name_width, std::size_t width) {
  std::string bar;
  std::string left;
  if (run.steps > 0) {
    const auto share = static_cast<double>(run.step) / static_cast<double>(run.steps);
    const auto filled = static_cast<std::size_t>(share * static_cast<double>(kBarWidth));
    bar = fmt::format("[{:.<{}}]  ", std::string(std::min(filled, kBarWidth), '#'), kBarWidth);
    if (run.step > 0) {
      const auto steps = static_cast<double>(run.step);
      left = fmt::format("  {} left", duration_text(run.seconds / steps *
                                                    static_cast<double>(run.steps - run.step)));
    }
  }
  std::string line = fmt::format("{:<{}}  {}", run.name, name_width, bar);
  line += run.steps > 0
              ? fmt::format("step {:>{}}/{}", run.step, std::to_string(run.steps).size(), run.steps)
              : fmt::format("step {}", run.step);
  if (run.step > 0) line += fmt::format("  loss {:.4f}", run.loss);
  line += left;
  if (line.size() > width) line.resize(width);
  return line;
}

Live::Live(std::size_t total, std::size_t done, bool quiet)
    : total_(total),
      done_(done),
      done_before_(done),
      quiet_(quiet),
      terminal_(::isatty(STDERR_FILENO) == 1),
      start_(std::chrono::steady_clock::now()),
      shown_(start_) {}

Live::~Live() { clear(); }

double Live::seconds() const { return since(start_); }

void Live::clear() {
  if (lines_ == 0) return;
  fmt::print(stderr, "\033[{}A\r\033[J", lines_);
  std::fflush(stderr);
  lines_ = 0;
}

std::string Live::overall(const std::vector<RunProgress>& running) const {
  std::string line = fmt::format("{} of {} runs done, {}", done_, total_, duration_text(seconds()));
  double fraction = 0;
  for (const RunProgress& run : running) {
    if (run.steps > 0) fraction += static_cast<double>(run.step) / static_cast<double>(run.steps);
  }
  const double worked = static_cast<double>(done_ - done_before_) + fraction;
  if (worked > 0) {
    const double remaining = static_cast<double>(total_ - done_) - fraction;
    line += fmt::format(", {} left", duration_text(seconds() / worked * std::max(0.0, remaining)));
  }
  return line;
}

void Live::update(const std::vector<RunProgress>& running) {
  if (quiet_ || running.empty() || since(shown_) < (terminal_ ? kLiveEvery : kPlainEvery)) return;
  shown_ = std::chrono::steady_clock::now();
  std::size_t name_width = 0;
  for (const RunProgress& run : running) name_width = std::max(name_width, run.name.size());
  const std::size_t width = terminal_ ? terminal_width() : 200;
  // Written at once, over the last picture, so that it does not flicker.
  std::string picture = lines_ > 0 ? fmt::format("\033[{}A\r\033[J", lines_) : "";
  for (const RunProgress& run : running) picture += progress_line(run, name_width, width) + "\n";
  picture += overall(running) + "\n";
  std::fputs(picture.c_str(), stderr);
  std::fflush(stderr);
  if (terminal_) lines_ = static_cast<int>(running.size()) + 1;
}

void Live::ended(const std::string& line, bool counts) {
  if (counts) ++done_;
  note(line);
}

void Live::note(const std::string& line) {
  if (!quiet_) print(line);
}

void Live::warn(const std::string& run, const std::string& text) {
  if (warned_.insert(text).second) print(fmt::format("{}: warning: {}", run, text));
}

void Live::print(const std::string& line) {
  clear();
  fmt::print(stderr, "{}\n", line);
  std::fflush(stderr);
}

void MetricsTail::read(RunProgress& progress) {
  std::error_code none;
  const auto size = std::filesystem::file_size(path_, none);
  if (none || static_cast<std::int64_t>(size) <= at_) return;
  std::string text(size - static_cast<std::size_t>(at_), '\0');
  try {
    InputFile(path_).read_at(at_, text.data(), static_cast<std::int64_t>(text.size()));
  } catch (const std::exception&) {
    return;  // it is only the progress: the next time will do
  }
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const Json record =
        Json::parse(text.begin() + static_cast<std::ptrdiff_t>(begin),
                    text.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
    if (!record.is_object() || record.value("kind", std::string()) != "train") continue;
    progress.step = record.value("step", progress.step);
    if (record.contains("loss")) progress.loss = number_of(record["loss"]);
  }
  at_ += static_cast<std::int64_t>(begin);
}

}  // namespace norma::study
