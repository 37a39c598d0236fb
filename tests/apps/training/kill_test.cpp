// Runs that are killed at random moments, or that find the disk full: resumed, they end in the same
// bits as one that nothing happened to.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>

#include "core/random.h"
#include "tests/apps/training/support.h"

#include "tests/support/paths.h"

namespace norma::test {
namespace {
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// Everything that carries state from one step to the next.
Json lively_config() {
  return Json::parse(R"({"name": "t", "seed": 3,
    "data": {"type": "shift", "vocab": 12, "length": 6, "limit": 64},
    "model": {"type": "sequential", "layers": [
      {"type": "embedding", "out": 16}, "batch_norm", {"type": "linear", "out": 32}, "relu",
      {"type": "dropout", "p": 0.2}, {"type": "linear", "out": 12}]},
    "optimizer": {"type": "adamw", "lr": 0.01},
    "schedule": {"type": "cosine", "warmup_steps": 5},
    "train": {"epochs": 20, "batch": 6, "accumulate": 2, "clip_norm": 1, "log_every": 1,
              "checkpoint_every": 1, "keep": 2, "best": "accuracy", "early_stop": 12,
              "ema": 0.9, "precision": "f16"}})");
}

struct Started {
  pid_t pid;
  std::string log;
};

// Starts `norma train` in the background. `most_bytes`: no file may grow beyond it.
Started start(const std::string& folder, std::optional<rlim_t> most_bytes = {},
              bool ignore_signal = false) {
  const std::string run = folder + "/run", log = folder + "/log", config = folder + "/config.json";
  const std::string program = norma_program();
  std::vector<const char*> words{program.c_str(), "train", config.c_str(), "--out", run.c_str(),
                                 "--threads",     "1",     "--quiet"};
  if (fs::exists(run + "/config.json")) words.push_back("--resume");
  words.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    if (most_bytes) {
      const rlimit limit{*most_bytes, *most_bytes};
      ::setrlimit(RLIMIT_FSIZE, &limit);
    }
    if (ignore_signal) ::signal(SIGXFSZ, SIG_IGN);
    ::execv(program.c_str(), const_cast<char**>(words.data()));
    ::_exit(127);
  }
  return {pid, log};
}

// The exit status, or 128 + the signal that ended it.
int wait_for(const Started& run) {
  int raw = 0;
  ::waitpid(run.pid, &raw, 0);
  return WIFSIGNALED(raw) ? 128 + WTERMSIG(raw) : WEXITSTATUS(raw);
}

std::string outcome(const std::string& run) {
  const std::int64_t last = RunFolder(run).checkpoint_steps().back();
  Json summary = Json::parse(bytes(run + "/summary.json"));
  for (const char* key : {"seconds", "peak_bytes", "host"}) summary.erase(key);
  std::string all = records(run) + summary.dump();
  for (const char* file : {"model", "optimizer", "ema", "series"}) {
    all += checksum_of_file(step_folder(run, last) + "/" + file + ".safetensors") + "\n";
  }
  return all;
}

void kill_and_resume(int kills) {
  const TemporaryFolder folder;
  write_file(folder / "config.json", lively_config().dump());
  const Clock::time_point begin = Clock::now();
  REQUIRE(wait_for(start(folder.path())) == 0);
  const double whole_seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  const std::string whole = outcome(folder / "run");
  CHECK(contains(whole, R"("status":"completed")"));

  RandomStream random(random_key(1, "kills"));
  int cut_in_checkpoint = 0;
  for (int killed = 0; killed < kills;) {
    // One run after another, each killed until it is through.
    fs::remove_all(folder / "run");
    for (;;) {
      const Started run = start(folder.path());
      // The runs get shorter as they go on from later and later steps.
      std::this_thread::sleep_for(std::chrono::duration<double>(random.uniform() * whole_seconds));
      if (killed < kills) ::kill(run.pid, SIGKILL);
      const int status = wait_for(run);
      INFO(bytes(run.log));
      CHECK_FALSE(contains(bytes(run.log), "damaged"));
      if (status == 0) break;
      REQUIRE(status == 128 + SIGKILL);
      ++killed;
      std::error_code none;
      for (const auto& entry : fs::directory_iterator(folder / "run/checkpoints", none))
        cut_in_checkpoint += is_temporary(entry.path().string());
    }
    CHECK(outcome(folder / "run") == whole);
  }
  INFO(kills << " kills, " << cut_in_checkpoint << " of them inside of a checkpoint");
  if (kills >= 100) CHECK(cut_in_checkpoint > 0);  // about a third of them
}

TEST_CASE("killed at random moments and resumed, a run ends in the same bits", "[training]") {
  kill_and_resume(10);
}

TEST_CASE("killed at 100 random moments and resumed, runs end in the same bits",
          "[training][slow]") {
  kill_and_resume(100);
}

TEST_CASE(
    "on a full disk a run stops, and goes on when there is space (lightgbm-org/LightGBM#7334)",
    "[training]") {
  const TemporaryFolder folder;
  Json config = lively_config();
  config["train"].erase("early_stop");
  config["train"]["checkpoint_every"] = 20;
  config["train"]["keep"] = 10;
  const auto prepare = [&] {
    fs::remove_all(folder / "run");
    write_file(folder / "config.json", config.dump());
    REQUIRE(wait_for(start(folder.path())) == 0);
    return outcome(folder / "run");
  };
  const auto fails_under = [&](rlim_t most_bytes, bool ignore_signal, const char* message) {
    const Started run = start(folder.path(), most_bytes, ignore_signal);
    CHECK(wait_for(run) == 1);
    INFO(bytes(run.log));
    CHECK(contains(bytes(run.log), message));
    CHECK(contains(bytes(run.log), "File too large"));
  };
  const auto goes_on = [&](const std::string& whole) {
    REQUIRE(wait_for(start(folder.path())) == 0);
    CHECK(outcome(folder / "run") == whole);
  };
  for (const bool ignore_signal : {false, true}) {
    INFO("SIGXFSZ ignored: " << ignore_signal);
    {
      // metrics.jsonl grows beyond the limit.
      config["model"]["layers"][2]["out"] = 32;
      const std::string whole = prepare();
      const auto size = fs::file_size(folder / "run/metrics.jsonl");
      fs::remove_all(folder / "run");
      fails_under(size * 3 / 4, ignore_signal, "metrics.jsonl: cannot be written");
      for (const std::int64_t step : RunFolder(folder / "run").checkpoint_steps()) CHECK(step > 0);
      goes_on(whole);
    }
    {
      // The weights do not fit; the checkpoint before stays as it was.
      config["model"]["layers"][2]["out"] = 1200;
      const std::string whole = prepare();
      for (const std::int64_t step : RunFolder(folder / "run").checkpoint_steps())
        if (step > 20) fs::remove_all(step_folder(folder / "run", step));
      const std::string before = weights(folder / "run", 20);
      fails_under(before.size() / 2, ignore_signal,
                  "step-40: the checkpoint was not written, the older ones are whole");
      CHECK(weights(folder / "run", 20) == before);
      CHECK(RunFolder(folder / "run").checkpoint_steps() == std::vector<std::int64_t>{20});
      CHECK(contains(bytes(folder / "run/summary.json"), R"("status": "failed")"));
      goes_on(whole);
    }
  }
}

}  // namespace
}  // namespace norma::test
