// A study end to end, with the program itself.
#include "apps/study/study.h"

#include <filesystem>
#include <fstream>

#include "apps/study/runner.h"
#include "tests/apps/study/support.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace norma::study {
namespace {

const std::string kProgram = norma::test::norma_program();

// Two rates, two seeds; the second rate is 0 but for rounding, so that nothing is learned.
std::string write_study(const TemporaryFolder& folder, const std::string& comparison) {
  Json study = config::parse_json(test::kStudy);
  study["base"]["train"]["steps"] = 60;
  study["base"]["optimizer"] = config::parse_json(R"({"type": "adamw", "lr": 0.02})");
  study["arms"] = config::parse_json(R"({"learns": {}, "does not": {"optimizer.lr": 1e-12}})");
  study["claims"] =
      Json::array({{{"text", "A rate is needed."},
                    {"expr", "final(\"learns\") " + comparison + " final(\"does not\") - 0.1"}}});
  const std::string path = folder / "small.json";
  std::ofstream(path) << study.dump();
  return path;
}

TEST_CASE("a study of two arms and two seeds, from its file to its report", "[study][slow]") {
  REQUIRE(std::filesystem::exists(kProgram));
  const TemporaryFolder folder;
  const StudyOptions options{
      .folder = folder / "out", .program = kProgram, .jobs = 2, .quiet = true};
  CHECK(run_study(write_study(folder, "<"), options) == StudyStatus::as_expected);
  CHECK(is_study(folder / "out"));
  const auto csv = test::lines(folder / "out/results.csv");
  REQUIRE(csv.size() == 5);
  CHECK(csv[1].starts_with("learns,0,completed,60,"));
  const std::string html = read_file(folder / "out/report.html");
  CHECK(norma::test::contains(html, ">held<"));
  CHECK(norma::test::contains(html, "<svg"));

  // The same runs, another claim: nothing is done again, and the verdict is another one.
  const auto ledger = read_file(folder / "out/ledger.jsonl");
  CHECK(run_study(write_study(folder, ">"), options) == StudyStatus::unexpected);
  CHECK(read_file(folder / "out/ledger.jsonl") == ledger);

  // Anew, in another folder and one at a time: the same numbers.
  StudyOptions again = options;
  again.folder = folder / "again";
  again.jobs = 1;
  CHECK(run_study(write_study(folder, "<"), again) == StudyStatus::as_expected);
  const Plan plan = make_plan(load_study(folder / "small.json"));
  const auto first = read_results(plan, folder / "out"),
             second = read_results(plan, folder / "again");
  for (std::size_t i = 0; i < first.size(); ++i) {
    REQUIRE(first[i].train.size() == 60);
    CHECK(first[i].train.back().loss == second[i].train.back().loss);
  }
  // Arms share their initial weights and their data: the first losses are the same bits.
  CHECK(first[0].train[0].loss == first[1].train[0].loss);
  CHECK(first[0].train[0].loss != first[2].train[0].loss);
}

TEST_CASE("the shipped studies are valid", "[study]") {
  int count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(norma::test::source_dir() + "/configs/experiments")) {
    if (entry.path().extension() != ".json") continue;  // the folder of their bases
    INFO(entry.path());
    const Plan plan = make_plan(load_study(entry.path().string()));
    CHECK(plan.config.name == entry.path().stem().string());
    CHECK_FALSE(plan.config.title.empty());
    CHECK_FALSE(plan.config.source.empty());
    CHECK_FALSE(plan.claims.empty());
    ++count;
  }
  CHECK(count >= 2);
}

}  // namespace
}  // namespace norma::study
