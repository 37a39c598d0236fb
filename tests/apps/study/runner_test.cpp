// The runner, with a script in place of the program.
#include "apps/study/runner.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <thread>

#include "apps/study/ledger.h"
#include "apps/study/live.h"
#include "tests/apps/study/support.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

namespace norma::study {
namespace {

RunnerOptions options_of(const TemporaryFolder& folder, const std::string& program,
                         std::int64_t jobs = 2) {
  return {folder / "study", program, jobs, true};
}

// Waits until the condition holds; false after ten seconds.
template <class F>
bool wait_for(F&& condition) {
  for (int i = 0; i < 1000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

TEST_CASE("every run is done once, and not again the next time", "[study]") {
  const TemporaryFolder folder;
  const Plan plan = make_plan(test::small_study());
  const std::string program = test::fake_norma(folder.path());
  CHECK(run_plan(plan, options_of(folder, program, 1)));
  const auto calls = test::lines(folder / "calls");
  REQUIRE(calls.size() == 4);
  CHECK(norma::test::contains(calls[1], "two-seed-0"));  // the first seed of all arms first
  CHECK(test::lines(folder / "study/ledger.jsonl").size() == 4);
  for (const RunRecord& run : read_results(plan, folder / "study")) {
    CHECK(run.outcome == Outcome::completed);
    CHECK(run.train.size() == 3);
  }
  CHECK(run_plan(plan, options_of(folder, program)));
  CHECK(test::lines(folder / "calls").size() == 4);

  SECTION("another seed is added to what is done") {
    StudyConfig more = test::small_study();
    more.seeds.push_back(7);
    CHECK(run_plan(make_plan(more), options_of(folder, program)));
    CHECK(test::lines(folder / "calls").size() == 6);
  }
  SECTION("another setting makes other runs") {
    StudyConfig other = test::small_study();
    other.arms.value["two"]["optimizer.lr"] = 0.003;
    CHECK(run_plan(make_plan(other), options_of(folder, program)));
    CHECK(test::lines(folder / "calls").size() == 6);
  }
  SECTION("another build of the program does all again") {
    (void)test::fake_norma(folder.path(), ": another");
    CHECK(run_plan(plan, options_of(folder, program)));
    CHECK(test::lines(folder / "calls").size() == 8);
  }
}

TEST_CASE("a run that fails or diverges is a result", "[study]") {
  const TemporaryFolder folder;
  const Plan plan = make_plan(test::small_study());
  SECTION("failed: the reason is its last line, and it is tried again") {
    const std::string program = test::fake_norma(
        folder.path(), "case $2 in *one-seed-1*) echo 'no more memory' >&2; exit 1;; esac");
    CHECK(run_plan(plan, options_of(folder, program)));
    const auto results = read_results(plan, folder / "study");
    CHECK(results[2].outcome == Outcome::failed);
    CHECK(results[2].reason == "no more memory");
    CHECK(results[3].outcome == Outcome::completed);
    CHECK(run_plan(plan, options_of(folder, program)));
    CHECK(test::lines(folder / "calls").size() == 5);
  }
  SECTION("diverged: kept") {
    const std::string program = test::fake_norma(folder.path(), R"(
echo '{"status":"diverged","steps":2,"seconds":1,"reason":"step 2: the loss is nan"}' >"$out/summary.json"
echo '{"kind":"train","step":1,"loss":"nan","lr":1,"grad_norm":"inf"}' >"$out/metrics.jsonl"
exit 3)");
    CHECK(run_plan(plan, options_of(folder, program)));
    const auto results = read_results(plan, folder / "study");
    CHECK(results[0].outcome == Outcome::diverged);
    CHECK(results[0].reason == "step 2: the loss is nan");
    CHECK(run_plan(plan, options_of(folder, program)));
    CHECK(test::lines(folder / "calls").size() == 4);
  }
  SECTION("failed to learn, and was stopped: kept") {
    const std::string program = test::fake_norma(folder.path(), R"(
echo '{"status":"failed_to_learn","steps":2,"seconds":1,"reason":"stopped early"}' >"$out/summary.json"
echo '{"kind":"train","step":1,"loss":4,"lr":1,"grad_norm":1}' >"$out/metrics.jsonl"
exit 3)");
    CHECK(run_plan(plan, options_of(folder, program)));
    CHECK(read_results(plan, folder / "study")[0].outcome == Outcome::failed_to_learn);
    CHECK(run_plan(plan, options_of(folder, program)));
    CHECK(test::lines(folder / "calls").size() == 4);
  }
  SECTION("ended by a signal") {
    const std::string program = test::fake_norma(folder.path(), "kill -9 $$");
    CHECK(run_plan(plan, options_of(folder, program)));
    CHECK(read_results(plan, folder / "study")[0].reason == "ended by signal 9");
  }
  SECTION("ended well, but left nothing") {
    const std::string program = test::fake_norma(folder.path(), "exit 0");
    CHECK(run_plan(plan, options_of(folder, program)));
    CHECK(read_results(plan, folder / "study")[0].outcome == Outcome::failed);
  }
}

// The first arm is quick, the second one takes for ever.
constexpr const char* kSecondHangs = R"(echo $$ >"$out.pid"
case $2 in *two*) if [ ! -e "$(dirname "$0")/quick" ]; then exec sleep 1000; fi;; esac)";

pid_t pid_in(const std::string& path) {
  const auto text = test::lines(path);
  return text.empty() || text[0].empty() ? 0 : std::stoi(text[0]);
}

// A process that has ended but that nobody has waited for is not alive.
bool alive(pid_t process) {
  const auto stat = test::lines("/proc/" + std::to_string(process) + "/stat");
  return !stat.empty() && stat[0].find(") Z") == std::string::npos;
}

TEST_CASE("a study that was killed goes on, and its runs do not outlive it", "[study]") {
  const TemporaryFolder folder;
  const Plan plan = make_plan(test::small_study());
  const std::string program = test::fake_norma(folder.path(), kSecondHangs);
  const pid_t study = ::fork();
  if (study == 0) {
    (void)run_plan(plan, options_of(folder, program));
    ::_exit(0);
  }
  const std::string hanging = run_folder(folder / "study", plan.runs[1]) + ".pid";
  REQUIRE(wait_for([&] {
    return test::lines(folder / "study/ledger.jsonl").size() == 2 && pid_in(hanging) > 0;
  }));
  // While it runs, nobody else may work in its folder.
  NORMA_CHECK_ERROR(run_plan(plan, options_of(folder, program)),
                    "another study works in this folder");
  ::kill(study, SIGKILL);
  ::waitpid(study, nullptr, 0);
  CHECK(wait_for([&] { return !alive(pid_in(hanging)); }));

  std::ofstream(folder / "quick") << "";
  const auto before = test::lines(folder / "study/ledger.jsonl");
  std::ofstream(folder / "study/ledger.jsonl", std::ios::app) << "{\"run\": \"cut by the ki";
  CHECK(run_plan(plan, options_of(folder, program)));
  const auto after = test::lines(folder / "study/ledger.jsonl");
  REQUIRE(after.size() == 4);
  CHECK(std::equal(before.begin(), before.end(), after.begin()));
  // Two were done, two hung or not yet begun when it was killed.
  int again = 0;
  for (const std::string& call : test::lines(folder / "calls"))
    again += norma::test::contains(call, "one-seed");
  CHECK(again == 2);
  for (const RunRecord& run : read_results(plan, folder / "study"))
    CHECK(run.outcome == Outcome::completed);
}

TEST_CASE("Ctrl-C stops the runs, which are done the next time", "[study]") {
  const TemporaryFolder folder;
  const Plan plan = make_plan(test::small_study());
  const std::string program = test::fake_norma(folder.path(), kSecondHangs);
  std::thread stopper([&] {
    (void)wait_for([&] { return test::lines(folder / "study/ledger.jsonl").size() == 2; });
    ::kill(::getpid(), SIGINT);
  });
  const bool complete = run_plan(plan, options_of(folder, program));
  stopper.join();
  CHECK_FALSE(complete);
  CHECK(test::lines(folder / "study/ledger.jsonl").size() == 2);
  CHECK_FALSE(alive(pid_in(run_folder(folder / "study", plan.runs[1]) + ".pid")));
  std::ofstream(folder / "quick") << "";
  CHECK(run_plan(plan, options_of(folder, program)));
  CHECK(test::lines(folder / "study/ledger.jsonl").size() == 4);
}

TEST_CASE("several runs go at a time, no more than asked for", "[study]") {
  const TemporaryFolder folder;
  const Plan plan = make_plan(test::small_study());
  // Each waits until two are there; a third would be noticed.
  const std::string program = test::fake_norma(folder.path(), R"sh(
d=$(dirname "$0")/now; mkdir -p "$d"; touch "$d/$$"
i=0; while [ "$(ls "$d" | wc -l)" -lt 2 ] && [ $i -lt 500 ]; do sleep 0.01; i=$((i+1)); done
ls "$d" | wc -l >>"$(dirname "$0")/counts"; sleep 0.1; rm "$d/$$")sh");
  CHECK(run_plan(plan, options_of(folder, program, 2)));
  const auto counts = test::lines(folder / "counts");
  REQUIRE(counts.size() == 4);
  CHECK(counts[0] == "2");
  for (const std::string& count : counts) CHECK(std::stoi(count) <= 2);
}

TEST_CASE("a ledger drops a line that a kill has cut, and refuses one that is damaged", "[study]") {
  const TemporaryFolder folder;
  const std::string path = folder / "ledger.jsonl";
  const LedgerEntry entry{"a-seed-0-1", "a", 0, "c0ffee", "p", Outcome::diverged, "step 3", 1.5};
  {
    Ledger ledger(path);
    ledger.append(entry);
    NORMA_CHECK_ERROR(Ledger(path), "another study works in this folder");
  }
  std::ofstream(path, std::ios::app) << R"({"run":"b)";
  {
    Ledger ledger(path);
    REQUIRE(ledger.entries().size() == 1);
    const LedgerEntry* found = ledger.find("c0ffee");
    REQUIRE(found);
    CHECK(found->outcome == Outcome::diverged);
    CHECK(found->reason == "step 3");
    CHECK(found->seconds == 1.5);
    CHECK(ledger.find("other") == nullptr);
    ledger.append({"a-seed-0-1", "a", 0, "c0ffee", "q", Outcome::completed, "", 2});
    CHECK(ledger.find("c0ffee")->program == "q");  // the newest counts
  }
  CHECK(read_ledger(path).size() == 2);
  std::ofstream(path, std::ios::app) << "{\"run\":3}\n";
  NORMA_CHECK_ERROR(Ledger(path), "line 3 is no entry of a ledger");
}

TEST_CASE("the progress of a run", "[study]") {
  CHECK(progress_line({"post, seed 1", 75, 150, 4.1589, 5}, 14, 100) ==
        "post, seed 1    [##########..........]  step  75/150  loss 4.1589  0:05 left");
  CHECK(progress_line({"a", 0, 150, 0, 0}, 1, 100) == "a  [....................]  step   0/150");
  CHECK(progress_line({"a", 7, 0, 1.5, 1}, 1, 100) == "a  step 7  loss 1.5000");
  CHECK(progress_line({"a", 75, 150, 4, 5}, 1, 10).size() == 10);

  const TemporaryFolder folder;
  const std::string path = folder / "metrics.jsonl";
  MetricsTail tail(path);
  RunProgress progress;
  tail.read(progress);
  CHECK(progress.step == 0);
  std::ofstream(path) << R"({"kind":"train","step":1,"loss":2.5})"
                      << "\n"
                      << R"({"kind":"train","st)";
  tail.read(progress);
  CHECK(progress.step == 1);
  CHECK(progress.loss == 2.5);
  std::ofstream(path, std::ios::app) << R"(ep":2,"loss":"inf"})"
                                     << "\n"
                                     << R"({"kind":"eval","step":9,"loss":1})"
                                     << "\n";
  tail.read(progress);
  CHECK(progress.step == 2);
  CHECK(std::isinf(progress.loss));
}

}  // namespace
}  // namespace norma::study
