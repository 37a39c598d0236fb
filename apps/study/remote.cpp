#include "apps/study/remote.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "apps/study/archive.h"
#include "core/config/json.h"
#include "core/error.h"
#include "core/file.h"

namespace norma::study {
namespace fs = std::filesystem;
namespace {

using config::Json;
using Clock = std::chrono::steady_clock;

constexpr const char* kFolder = "@";  // what stands for the task's folder in its arguments
constexpr auto kTellEvery = std::chrono::seconds(1);
constexpr auto kSilence = std::chrono::seconds(30);  // after which a rank counts as lost

std::string message_of(const Json& head, const std::string& files = {}) {
  return head.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n" + files;
}

// The head of a message; `files` gets what stands behind it.
Json head_of(const std::string& text, std::string_view& files) {
  const std::size_t line = std::min(text.find('\n'), text.size());
  Json head = Json::parse(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(line));
  files = std::string_view(text).substr(std::min(line + 1, text.size()));
  return head;
}

}  // namespace

struct RemoteJobs::State {
  int rank = 0;
  std::string folder;
  RunProgress progress;
  std::optional<int> status;
};

class RemoteJobs::RemoteJob final : public Job {
 public:
  RemoteJob(Ranks& ranks, std::int64_t job, std::shared_ptr<State> state)
      : ranks_(ranks), job_(job), state_(std::move(state)) {}
  std::optional<int> poll(RunProgress& progress) override {
    progress.step = std::max(progress.step, state_->progress.step);
    progress.loss = state_->progress.loss;
    return state_->status;
  }
  void stop() override {
    if (!state_->status) ranks_.post(state_->rank, message_of({{"do", "stop"}, {"job", job_}}));
  }

 private:
  Ranks& ranks_;
  std::int64_t job_;
  std::shared_ptr<State> state_;
};

RemoteJobs::RemoteJobs(Ranks& ranks, std::int64_t jobs, std::string fingerprint)
    : ranks_(ranks),
      jobs_(jobs),
      fingerprint_(std::move(fingerprint)),
      workers_(static_cast<std::size_t>(ranks.size())) {
  for (int rank = 1; rank < ranks.size(); ++rank) {
    workers_[static_cast<std::size_t>(rank)].heard = Clock::now();
    ranks.post(rank, message_of({{"do", "tell"}}));
  }
}

int RemoteJobs::free_rank() const {
  int best = 0;
  for (int rank = 1; rank < ranks_.size(); ++rank) {
    const Worker& worker = workers_[static_cast<std::size_t>(rank)];
    if (!worker.here || worker.lost || worker.running >= jobs_) continue;
    if (best == 0 || worker.running < workers_[static_cast<std::size_t>(best)].running) best = rank;
  }
  return best;
}

bool RemoteJobs::have_room() const { return free_rank() > 0; }

std::unique_ptr<Job> RemoteJobs::start(const std::vector<std::string>& arguments,
                                       const std::string& folder) {
  auto state = std::make_shared<State>();
  state->rank = free_rank();
  state->folder = folder;
  Json head{{"do", "run"}, {"job", next_}, {"arguments", Json::array()}};
  // The rank has the same program at a place of its own.
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const bool inside = arguments[i].starts_with(folder);
    head["arguments"].push_back(inside ? kFolder + arguments[i].substr(folder.size())
                                       : arguments[i]);
  }
  ranks_.post(state->rank, message_of(head, pack_run(folder)));
  ++workers_[static_cast<std::size_t>(state->rank)].running;
  running_[next_] = state;
  return std::make_unique<RemoteJob>(ranks_, next_++, state);
}

void RemoteJobs::update() {
  while (const std::optional<Message> message = ranks_.receive()) take(*message);
  for (int rank = 1; rank < ranks_.size(); ++rank) {
    Worker& worker = workers_[static_cast<std::size_t>(rank)];
    if (worker.lost || Clock::now() - worker.heard < kSilence) continue;
    worker.lost = true;
    ranks_.lose();
    for (const auto& [job, state] : running_) {
      if (state->rank == rank) state->status = Job::kLost;
    }
    std::erase_if(running_, [&](const auto& entry) { return entry.second->rank == rank; });
  }
}

void RemoteJobs::take(const Message& message) {
  Worker& worker = workers_[static_cast<std::size_t>(message.from)];
  worker.heard = Clock::now();
  std::string_view files;
  const Json head = head_of(message.text, files);
  const std::string kind = head.at("is");
  if (kind == "here") {
    require(head.at("program") == fingerprint_,
            "rank {} runs another build of the program; install the same one everywhere",
            message.from);
    worker.here = true;
    return;
  }
  const auto found = running_.find(head.value("job", std::int64_t{0}));
  if (found == running_.end()) return;  // only that it is alive; or of a job that was given up
  State& state = *found->second;
  if (kind == "progress") {
    state.progress.step = head.at("step");
    state.progress.loss = head.at("loss").is_number() ? head.at("loss").get<double>() : NAN;
    return;
  }
  if (kind == "ended") {
    unpack_run(files, state.folder);
    state.status = head.at("status").get<int>();
  } else {
    write_file(state.folder + ".log",
               fmt::format("rank {}: {}\n", message.from, head.at("reason").get<std::string>()));
    state.status = 1;
  }
  --worker.running;
  running_.erase(found);
}

namespace {

// Beside the process's number: folders of ranks that were killed are known by it.
constexpr std::string_view kFolderName = "norma-rank-";

void remove_folders_of_the_dead() {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(fs::temp_directory_path(), ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kFolderName)) continue;
    const int process = std::atoi(name.c_str() + kFolderName.size());
    if (process > 0 && ::kill(process, 0) != 0 && errno == ESRCH)
      fs::remove_all(entry.path(), ignored);
  }
}

class Worker {
 public:
  explicit Worker(Ranks& ranks)
      : ranks_(ranks),
        program_(this_program()),
        fingerprint_(fingerprint(program_)),
        folder_(fs::temp_directory_path() / fmt::format("{}{}", kFolderName, ::getpid())) {
    remove_folders_of_the_dead();
  }
  ~Worker() {
    jobs_.clear();
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void run() {
    for (auto told = Clock::now();;) {
      while (const std::optional<Message> message = ranks_.receive()) {
        if (!take(*message)) return;
      }
      const bool tell = Clock::now() - told > kTellEvery;
      if (tell) {
        ranks_.post(0, message_of({{"is", "at work"}}));
        told = Clock::now();
      }
      for (auto at = jobs_.begin(); at != jobs_.end();) {
        RunProgress& progress = at->second.progress;
        const std::optional<int> status = at->second.process->poll(progress);
        if (status) {
          send_result(at->first, *status);
          at = jobs_.erase(at);
          continue;
        }
        if (tell && progress.step > 0) {
          ranks_.post(0, message_of({{"is", "progress"},
                                     {"job", at->first},
                                     {"step", progress.step},
                                     {"loss", progress.loss}}));
        }
        ++at;
      }
      std::this_thread::sleep_for(kPollEvery);
    }
  }

 private:
  struct Running {
    std::unique_ptr<Job> process;
    RunProgress progress;
  };

  // False: to quit.
  bool take(const Message& message) {
    std::string_view files;
    const Json head = head_of(message.text, files);
    const std::string what = head.at("do");
    if (what == "quit") return false;
    if (what == "tell") {
      ranks_.post(0, message_of({{"is", "here"}, {"program", fingerprint_}}));
      return true;
    }
    const std::int64_t job = head.at("job");
    if (what == "stop") {
      if (const auto found = jobs_.find(job); found != jobs_.end()) found->second.process->stop();
      return true;
    }
    try {
      const std::string folder = folder_of(job);
      unpack_run(files, folder);
      std::vector<std::string> arguments = {program_};
      for (const Json& argument : head.at("arguments")) {
        const auto text = argument.get<std::string>();
        arguments.push_back(text.starts_with(kFolder) ? folder + text.substr(1) : text);
      }
      jobs_[job] = {std::make_unique<LocalJob>(arguments, folder), {}};
    } catch (const std::exception& e) {
      fail(job, e);
    }
    return true;
  }

  std::string folder_of(std::int64_t job) const { return folder_ + "/" + std::to_string(job); }

  void send_result(std::int64_t job, int status) {
    const std::string folder = folder_of(job);
    try {
      ranks_.post(
          0, message_of({{"is", "ended"}, {"job", job}, {"status", status}}, pack_run(folder)));
    } catch (const std::exception& e) {
      fail(job, e);
    }
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  }

  void fail(std::int64_t job, const std::exception& e) {
    ranks_.post(0, message_of({{"is", "failed"}, {"job", job}, {"reason", e.what()}}));
  }

  Ranks& ranks_;
  std::string program_, fingerprint_, folder_;
  std::map<std::int64_t, Running> jobs_;
};

}  // namespace

void work(Ranks& ranks) {
  // Rank 0 hears of Ctrl-C too, and decides: the runs are to be saved and sent back first.
  for (const int s : {SIGINT, SIGTERM, SIGHUP}) ::signal(s, SIG_IGN);
  Worker(ranks).run();
}

void quit(Ranks& ranks) {
  for (int rank = 1; rank < ranks.size(); ++rank) ranks.post(rank, message_of({{"do", "quit"}}));
}

}  // namespace norma::study
