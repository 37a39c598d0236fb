#include "apps/study/runner.h"

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "apps/study/child_process.h"
#include "apps/study/job.h"
#include "apps/study/ledger.h"
#include "apps/study/live.h"
#include "apps/study/measures.h"
#include "apps/study/remote.h"
#include "apps/study/task.h"
#include "apps/training/progress.h"
#include "apps/training/run_folder.h"
#include "core/error.h"
#include "core/file.h"

namespace norma::study {
namespace fs = std::filesystem;
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kPatience = std::chrono::seconds(20);  // for a stopped run to save
constexpr int kDivergedStatus = 3;                    // of `norma train`; or it failed to learn
constexpr std::size_t kLongestReason = 300;           // letters kept of a failed run's last words

std::atomic<int> g_stops{0};
static_assert(std::atomic<int>::is_always_lock_free);  // it is written by a signal handler

// Counts Ctrl-C, SIGTERM and SIGHUP while it lives.
class StopSignals {
 public:
  StopSignals() {
    g_stops = 0;
    struct sigaction action {};
    action.sa_handler = [](int) { g_stops.fetch_add(1); };
    for (std::size_t i = 0; i < std::size(kSignals); ++i)
      ::sigaction(kSignals[i], &action, &before_[i]);
  }
  ~StopSignals() {
    for (std::size_t i = 0; i < std::size(kSignals); ++i)
      ::sigaction(kSignals[i], &before_[i], nullptr);
  }
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

 private:
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction before_[std::size(kSignals)];
};

// The last line of a text file that says something.
std::string last_words(const std::string& path) {
  std::error_code none;
  if (!fs::exists(path, none)) return "";
  std::string text = read_file(path);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  const std::size_t newline = text.rfind('\n');
  if (newline != std::string::npos) text.erase(0, newline + 1);
  if (text.size() > kLongestReason) text.resize(kLongestReason);
  return text;
}

struct Running {
  Task* task;
  std::unique_ptr<Job> job;
  bool here;  // not on another rank
  RunProgress progress;
  Clock::time_point start;
};

class Runner {
 public:
  Runner(const Plan& plan, const RunnerOptions& options)
      : plan_(plan),
        options_(options),
        program_(options.program.empty() ? this_program() : options.program),
        fingerprint_(fingerprint(program_)),
        jobs_(static_cast<std::size_t>(jobs_of(plan, options))) {
    fs::create_directories(options.folder + "/runs");
    ledger_ = std::make_unique<Ledger>(options.folder + "/ledger.jsonl");
    std::size_t outdated = 0;
    std::vector<std::size_t> waiting;
    for (std::size_t i = 0; i < plan.runs.size(); ++i) {
      if (!is_done(plan.runs[i], outdated)) waiting.push_back(i);
    }
    live_ =
        std::make_unique<Live>(plan.runs.size(), plan.runs.size() - waiting.size(), options.quiet);
    if (outdated > 0)
      live_->note(fmt::format(
          "{} runs were done by another build of the program: they are done again", outdated));
    if (waiting.size() < plan.runs.size()) {
      live_->note(fmt::format("{} of {} runs are done already, in {}",
                              plan.runs.size() - waiting.size(), plan.runs.size(), options.folder));
    }
    if (options.ranks) {
      remote_ = std::make_unique<RemoteJobs>(*options.ranks, jobs_of(plan, options), fingerprint_);
    }
    tasks_ = make_tasks(plan, waiting, options.folder, options.share, fingerprint_);
    for (Task& task : tasks_) {
      if (!task.done) queue_.push_back(&task);
    }
  }

  bool run() {
    const StopSignals signals;
    while (!queue_.empty() || !running_.empty()) {
      if (g_stops > 0) return stop();
      if (remote_) remote_->update();
      start_ready();
      std::vector<RunProgress> shown;
      for (auto r = running_.begin(); r != running_.end();) {
        r->progress.seconds = std::chrono::duration<double>(Clock::now() - r->start).count();
        const std::optional<int> status = r->job->poll(r->progress);
        if (status) {
          if (r->here) --running_here_;
          finish(*r, *status);
          r = running_.erase(r);
        } else {
          shown.push_back(r->progress);
          ++r;
        }
      }
      live_->update(shown);
      std::this_thread::sleep_for(kPollEvery);
    }
    fs::remove_all(prefixes_folder(options_.folder));
    return true;
  }

 private:
  static std::int64_t jobs_of(const Plan& plan, const RunnerOptions& options) {
    if (options.jobs > 0) return options.jobs;
    if (options.ranks) return 1;
    if (plan.config.jobs) return *plan.config.jobs;
    return std::max(1U, std::thread::hardware_concurrency());
  }

  bool is_done(const PlannedRun& run, std::size_t& outdated) const {
    const LedgerEntry* entry = ledger_->find(run.hash);
    if (!entry || entry->run != run.id) return false;
    if (!is_result(entry->outcome)) return false;
    if (!fs::exists(RunFolder(run_folder(options_.folder, run)).summary_path())) return false;
    if (entry->program == fingerprint_) return true;
    ++outdated;
    return false;
  }

  void start_ready() {
    for (auto next = queue_.begin(); next != queue_.end();) {
      const bool here = running_here_ < jobs_;
      if (!here && !(remote_ && remote_->have_room())) return;
      if ((*next)->is_ready()) {
        start(**next, here);
        next = queue_.erase(next);
      } else {
        ++next;
      }
    }
  }

  // On this machine, or on another rank.
  void start(Task& task, bool here) {
    // A run that was stopped and has saved goes on; of any other nothing is worth keeping.
    const bool resume =
        can_resume(task, fingerprint_) && (task.is_prefix() || !ledger_->find(task.run->hash));
    const std::vector<std::string> arguments = prepare(task, resume, program_, fingerprint_);
    RunProgress progress;
    progress.name = task.name;
    progress.steps = task.steps;
    std::unique_ptr<Job> job;
    if (here) {
      job = std::make_unique<LocalJob>(arguments, task.folder);
    } else {
      job = remote_->start(arguments, task.folder);
    }
    running_.push_back({&task, std::move(job), here, progress, Clock::now()});
    if (here) ++running_here_;
  }

  void finish(const Running& ended, int status) {
    Task& task = *ended.task;
    if (status == Job::kLost) {
      live_->note(fmt::format("{}: the rank that ran it is gone; it is done again", task.name));
      queue_.push_front(&task);
      return;
    }
    task.done = true;
    for (const std::string& warning : warnings_of(task)) live_->warn(task.name, warning);
    if (task.is_prefix()) {
      // A prefix that did not come to its end is none: its runs start anew, and end as it did.
      live_->ended(fmt::format("{}  ({})", task.name, duration_text(ended.progress.seconds)),
                   false);
      return;
    }
    const PlannedRun& run = *task.run;
    LedgerEntry entry{run.id,
                      plan_.arms[run.arm].name,
                      plan_.seeds[run.seed],
                      run.hash,
                      fingerprint_,
                      Outcome::failed,
                      "",
                      ended.progress.seconds};
    double final_loss = kMissing;
    try {
      const RunRecord record = read_run(task.folder);
      entry.reason = record.reason;
      if (status == 0 || status == kDivergedStatus) entry.outcome = record.outcome;
      final_loss = find_measure("final")->of(record);
    } catch (const std::exception& e) {
      entry.reason = e.what();
    }
    if (!is_result(entry.outcome)) entry.outcome = Outcome::failed;
    if (entry.outcome == Outcome::failed && entry.reason.empty()) {
      const std::string words = last_words(task.folder + ".log");
      entry.reason = !words.empty() ? words
                     : status < 0   ? fmt::format("ended by signal {}", -status)
                                    : fmt::format("ended with status {}", status);
    }
    if (is_result(entry.outcome)) leave_as_configured(task);
    ledger_->append(entry);
    std::string line = fmt::format("{}: ", task.name);
    if (entry.outcome == Outcome::completed) {
      line += fmt::format("loss {:.4f}", final_loss);
    } else {
      line += fmt::format("{}: {}", name_of(entry.outcome), entry.reason);
    }
    live_->ended(fmt::format("{}  ({})", line, duration_text(entry.seconds)), true);
  }

  // Lets the running runs save and end; a second signal, or too long a wait, ends them at once.
  bool stop() {
    live_->note("stopping; the study goes on from here when it is started again");
    for (Running& r : running_) r.job->stop();
    const auto deadline = Clock::now() + kPatience;
    while (g_stops < 2 && Clock::now() < deadline) {
      if (remote_) remote_->update();
      const bool all_ended = std::all_of(running_.begin(), running_.end(), [](Running& r) {
        return r.job->poll(r.progress).has_value();
      });
      if (all_ended) break;
      std::this_thread::sleep_for(kPollEvery);
    }
    running_.clear();
    return false;
  }

  const Plan& plan_;
  const RunnerOptions& options_;
  std::string program_, fingerprint_;
  std::size_t jobs_;
  std::unique_ptr<Ledger> ledger_;
  std::unique_ptr<Live> live_;
  std::list<Task> tasks_;
  std::list<Task*> queue_;  // what has not begun
  std::list<Running> running_;
  std::size_t running_here_ = 0;
  std::unique_ptr<RemoteJobs> remote_;  // null without ranks
};

}  // namespace

bool run_plan(const Plan& plan, const RunnerOptions& options) {
  return Runner(plan, options).run();
}

std::vector<RunRecord> read_results(const Plan& plan, const std::string& folder) {
  std::map<std::string, LedgerEntry> newest;
  if (fs::exists(folder + "/ledger.jsonl")) {
    for (LedgerEntry& entry : read_ledger(folder + "/ledger.jsonl"))
      newest[entry.run] = std::move(entry);
  }
  std::vector<RunRecord> records;
  for (const PlannedRun& run : plan.runs) {
    RunRecord record;
    const auto entry = newest.find(run.id);
    if (entry != newest.end()) {
      record = read_run(run_folder(folder, run));
      record.outcome = entry->second.outcome;
      record.reason = entry->second.reason;
    }
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace norma::study
