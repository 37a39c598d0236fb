// The verbs study, reproduce and report, as they are called.
#include <fstream>

#include "tests/apps/study/support.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace norma {
namespace {

using test::contains;
using test::run_norma;
using test::run_shell;

TEST_CASE("a study that is wrong ends with status 2, and leaves nothing", "[study]") {
  const TemporaryFolder folder;
  study::Json json = config::parse_json(study::test::kStudy);
  json["arms"]["one"]["model.with"] = 3;
  std::ofstream(folder / "study.json") << json.dump();
  const auto wrong = run_norma("study " + (folder / "study.json") + " --out " + (folder / "out"));
  CHECK(wrong.status == 2);
  CHECK(contains(wrong.err, "arm \"one\": model.with"));
  CHECK(wrong.out.empty());
  CHECK_FALSE(std::filesystem::exists(folder / "out"));
  CHECK(run_norma("study " + (folder / "nowhere.json")).status == 2);
  CHECK(run_norma("study").status == 2);
  CHECK(run_norma("study a.json --jobs 0").status == 2);
}

TEST_CASE("the shipped studies are listed, and an unknown name is an error", "[study]") {
  const auto list = run_norma("reproduce --list");
  CHECK(list.status == 0);
  CHECK(contains(list.out, "warmup "));
  CHECK(contains(list.out, "warmup_control "));
  // Found from any folder.
  CHECK(run_shell("cd / && " + norma::test::norma_program() + " reproduce --list").out == list.out);
  const auto unknown = run_norma("reproduce warmpu");
  CHECK(unknown.status == 2);
  CHECK(contains(unknown.err, "unknown study \"warmpu\"; the nearest known name is \"warmup\""));
  CHECK(run_norma("reproduce warmup --all").status == 2);
}

TEST_CASE("an arm of a study is probed", "[study]") {
  const TemporaryFolder folder;
  std::ofstream(folder / "s.json") << study::test::kStudy;
  const std::string probe = "probe " + (folder / "s.json") + " --no-curvature";
  const auto first = run_norma(probe);
  CHECK(first.status == 0);
  CHECK(contains(first.err, "--arm NAME takes another"));
  CHECK(run_norma(probe + " --arm one").out == first.out);
  const auto unknown = run_norma(probe + " --arm onne");
  CHECK(unknown.status == 2);
  CHECK(contains(unknown.err, "the nearest known name is \"one\""));
  const auto run =
      run_norma("probe " + norma::test::source_dir() + "/configs/fashion_mlp.json --arm x");
  CHECK(run.status == 2);
  CHECK(contains(run.err, "is the configuration of one run"));
}

TEST_CASE("what runs warn of is said by the study, once", "[study]") {
  const TemporaryFolder folder;
  study::Json json = config::parse_json(study::test::kStudy);
  json["base"]["train"]["steps"] = 2;
  json["arms"]["two"] = {{"model.bias", false}};
  json["arms"]["one"] = study::Json::object();
  json["base"]["schedule"] = {{"type", "linear"}, {"warmup_steps", 5}};
  std::ofstream(folder / "study.json") << json.dump();
  const auto done =
      run_norma("study " + (folder / "study.json") + " --jobs 1 --quiet --out " + (folder / "out"));
  INFO(done.err);
  CHECK(done.status == 0);
  CHECK(contains(done.err, "one, seed 0: warning: "));
  std::size_t warnings = 0;
  for (std::size_t at = 0; (at = done.err.find("warning: ", at)) != std::string::npos; ++at) {
    ++warnings;
  }
  CHECK(warnings == 1);
  // The study is called by its folder as well, and has nothing to do there.
  const auto again = run_norma("study " + (folder / "out"));
  CHECK(again.status == 0);
  CHECK(contains(again.err, "4 of 4 runs are done already, in " + (folder / "out")));
}

TEST_CASE("a report of what is no run is an error", "[report]") {
  const auto wrong = run_norma("report /nowhere");
  CHECK(wrong.status == 1);
  CHECK(contains(wrong.err, "/nowhere: is not the folder of a run"));
}

TEST_CASE("a run, its report, and Ctrl-C in the middle of a study", "[study][slow]") {
  const TemporaryFolder folder;
  study::Json json = config::parse_json(study::test::kStudy);
  std::ofstream(folder / "run.json") << json["base"].dump();
  REQUIRE(
      run_norma("train " + (folder / "run.json") + " --quiet --out " + (folder / "run")).status ==
      0);
  const auto report = run_norma("report " + (folder / "run") + " --svg " + (folder / "run.svg"));
  CHECK(report.status == 0);
  CHECK(report.out == (folder / "run/report.html") + "\n");
  const std::string page = read_file(folder / "run/report.html");
  CHECK(contains(page, "guessing, ln 8"));
  CHECK(contains(page, ">accuracy</th>"));
  CHECK(contains(read_file(folder / "run.svg"), "<svg"));

  json["base"]["train"]["steps"] = 10'000'000;
  std::ofstream(folder / "study.json") << json.dump();
  const std::string out = folder / "out";
  const auto stopped =
      run_shell(norma::test::norma_program() + " study " + (folder / "study.json") + " --out " +
                out + " & p=$!; while ! ls " + out +
                "/runs/*/metrics.jsonl 2>/dev/null; do sleep 0.1; done; kill -INT $p; wait $p");
  CHECK(stopped.status == 130);
  CHECK(contains(stopped.err, "stopping; the study goes on from here"));
  CHECK(study::test::lines(out + "/ledger.jsonl").empty());
}

}  // namespace
}  // namespace norma
