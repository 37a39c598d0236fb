// Beginnings that runs have in common.
#include "apps/study/sharing.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "apps/study/runner.h"
#include "tests/apps/study/support.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace norma::study {
namespace {

// Constant up to a decay over the last 20 steps, of 100.
Plan plan_of(const std::string& arms, const std::string& seeds = "[0]") {
  Json study = config::parse_json(test::kStudy);
  study["base"]["model"]["dropout"] = 0.1;
  study["base"]["train"]["steps"] = 100;
  study["base"]["train"]["eval_every"] = 7;
  study["base"]["optimizer"] = config::parse_json(R"({"type": "adamw", "lr": 0.01})");
  study["base"]["schedule"] =
      config::parse_json(R"({"type": "wsd", "warmup_steps": 5, "decay_steps": 20})");
  study["arms"] = config::parse_json(arms);
  study["seeds"] = config::parse_json(seeds);
  return make_plan(config::parse<StudyConfig>(study));
}

TEST_CASE("runs share what their schedules have in common", "[study]") {
  // The decay begins at step 80, 40, 60; all else agrees.
  const Plan plan = plan_of(R"({"long": {}, "short": {"train.steps": 60},
      "constant": {"schedule": {"type": "constant", "warmup_steps": 5}},
      "middle": {"train.steps": 80}, "rate": {"optimizer.lr": 0.02},
      "warmup": {"schedule.warmup_steps": 6}})");
  const Sharing sharing = share_prefixes(plan);
  // A decay's first step has the full rate.
  REQUIRE(sharing.prefixes.size() == 3);
  CHECK(sharing.prefixes[0].steps == 41);
  CHECK(sharing.prefixes[0].runs == 4);
  CHECK_FALSE(sharing.prefixes[0].before.has_value());
  CHECK(sharing.prefixes[1].steps == 61);
  CHECK(sharing.prefixes[1].runs == 3);
  CHECK(sharing.prefixes[1].before == 0);
  CHECK(sharing.prefixes[2].steps == 81);
  CHECK(sharing.prefixes[2].runs == 2);
  CHECK(sharing.prefixes[2].before == 1);
  CHECK(sharing.prefixes[0].id == plan.runs[0].hash.substr(0, 8) + "-41");
  CHECK(sharing.of_run == std::vector<std::optional<std::size_t>>{2, 0, 2, 1, {}, {}});
}

TEST_CASE("runs share nothing that is not worth it, or not known", "[study]") {
  const auto shared = [](const std::string& arms, const std::string& seeds = "[0]") {
    return share_prefixes(plan_of(arms, seeds)).prefixes.size();
  };
  CHECK(shared(R"({"a": {}, "b": {"train.steps": 60}})", "[0, 1]") == 2);  // one a seed
  CHECK(shared(R"({"a": {}})", "[0, 1]") == 0);
  CHECK(shared(R"({"a": {}, "b": {"train.batch": 3}})") == 0);
  // 13 steps are less than a fifth of 100, 21 are not.
  CHECK(shared(R"({"a": {}, "b": {"train.steps": 32}})") == 0);
  CHECK(shared(R"({"a": {}, "b": {"train.steps": 40}})") == 1);
  // The last step is each run's own, even where nothing differs.
  const Plan same = plan_of(R"({"a": {}, "b": {}})");
  REQUIRE(share_prefixes(same).prefixes.size() == 1);
  CHECK(share_prefixes(same).prefixes[0].steps == 99);
  CHECK(shared(R"({"a": {"schedule": {"type": "constant", "warmup_tokens": 100}},
                   "b": {"schedule": {"type": "constant", "warmup_tokens": 100}}})") == 0);
}

TEST_CASE("a prefix that a single run still needs is not trained", "[study]") {
  const TemporaryFolder folder;
  const Plan plan = plan_of(R"({"long": {}, "short": {"train.steps": 60},
      "constant": {"schedule": {"type": "constant", "warmup_steps": 5}}})");
  const auto names = [&](const std::vector<std::size_t>& runs, bool share = true) {
    std::vector<std::string> found;
    for (const Task& task : make_tasks(plan, runs, folder.path(), share, "f"))
      found.push_back(task.before ? task.name + " < " + std::to_string(task.before->until)
                                  : task.name);
    return found;
  };
  CHECK(names({0, 1, 2}) == std::vector<std::string>{"beginning of 3 runs, seed 0",
                                                     "beginning of 2 runs, seed 0 < 41",
                                                     "long, seed 0 < 81", "short, seed 0 < 41",
                                                     "constant, seed 0 < 81"});
  CHECK(names({0, 1}) == std::vector<std::string>{"beginning of 3 runs, seed 0",
                                                  "long, seed 0 < 41", "short, seed 0 < 41"});
  CHECK(names({2}) == std::vector<std::string>{"constant, seed 0"});
  CHECK(names({0, 1}, false) == std::vector<std::string>{"long, seed 0", "short, seed 0"});
}

// The records and the ends of all runs, without times and places.
std::vector<std::string> all_of(const Plan& plan, const std::string& study) {
  std::vector<std::string> texts;
  for (const PlannedRun& run : plan.runs) {
    std::string text;
    for (const std::string& line : test::lines(run_folder(study, run) + "/metrics.jsonl")) {
      Json record = config::parse_json(line);
      record.erase("seconds");
      text += record.dump() + "\n";
    }
    Json summary = config::parse_json(read_file(run_folder(study, run) + "/summary.json"));
    for (const char* key : {"status", "final", "best", "spike_score", "steps"})
      text += summary[key].dump();
    text += std::filesystem::exists(run_folder(study, run) + "/checkpoints") ? "checkpoints" : "";
    texts.push_back(text);
  }
  return texts;
}

TEST_CASE("shared beginnings change no number, killed at any time", "[study][slow]") {
  const TemporaryFolder folder;
  const Plan plan = plan_of(R"({"long": {}, "short": {"train.steps": 60},
      "constant": {"schedule": {"type": "constant", "warmup_steps": 5}}})",
                            "[0, 1]");
  const auto options = [&](const std::string& name, bool share) {
    return RunnerOptions{folder / name, norma::test::norma_program(), 2, true, share};
  };
  CHECK(run_plan(plan, options("alone", false)));
  const auto expected = all_of(plan, folder / "alone");
  CHECK(run_plan(plan, options("shared", true)));
  CHECK(all_of(plan, folder / "shared") == expected);
  CHECK_FALSE(std::filesystem::exists(folder / "shared/prefixes"));
  // How long a study lives does not matter to what comes out.
  int lives = 1;
  for (bool ended = false; !ended; ++lives) {
    const pid_t study = ::fork();
    if (study == 0) {
      const bool done = run_plan(plan, options("killed", true));
      ::_exit(done ? 0 : 1);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(30 * lives));
    ::kill(study, SIGKILL);
    int status = 0;
    ::waitpid(study, &status, 0);
    ended = WIFEXITED(status);
    if (lives > 8) {
      CHECK(run_plan(plan, options("killed", true)));
      ended = true;
    }
  }
  CHECK(all_of(plan, folder / "killed") == expected);
}

}  // namespace
}  // namespace norma::study
