#include "apps/study/plan.h"

#include <fstream>

#include "apps/training/run_config.h"
#include "tests/apps/study/support.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

namespace norma::study {
namespace {

using norma::test::error_of;

Plan plan_with(const std::string& key, const std::string& json) {
  Json study = config::parse_json(test::kStudy);
  study[key] = config::parse_json(json);
  return make_plan(config::parse<StudyConfig>(study));
}

TEST_CASE("a plan has a run for each arm and seed, the first seed of all arms first", "[study]") {
  const Plan plan = make_plan(test::small_study());
  REQUIRE(plan.runs.size() == 4);
  CHECK(plan.runs[0].id.starts_with("one-seed-0-"));
  CHECK(plan.runs[1].id.starts_with("two-seed-0-"));
  CHECK(plan.runs[2].id.starts_with("one-seed-1-"));
  CHECK(&plan.run(1, 1) == &plan.runs[3]);
  CHECK(plan.runs[1].config["optimizer"]["lr"] == 0.002);
  CHECK(plan.runs[3].config["seed"] == 1);
  CHECK(plan.runs[0].config["model"]["heads"] == 1);
  CHECK(plan.runs[0].config["loss"]["type"] == "cross_entropy");  // whole, with defaults
  CHECK(plan.runs[0].steps == 20);
  CHECK(plan.runs[0].hash != plan.runs[2].hash);
  CHECK(plan.runs[0].hash == config::hash(plan.runs[0].config));
}

TEST_CASE("factors cross with the arms", "[study]") {
  const Plan plan = plan_with(
      "factors", R"json({"optimizer.weight_decay": [0, 0.1], "model.layers": [1, 2]})json");
  REQUIRE(plan.arms.size() == 8);
  CHECK(plan.arms[0].name == "one, weight_decay=0, layers=1");
  CHECK(plan.arms[7].name == "two, weight_decay=0.1, layers=2");
  CHECK(plan.run(7, 0).config["model"]["layers"] == 2);
  Json alone = config::parse_json(test::kStudy);
  alone.erase("arms");
  CHECK(make_plan(config::parse<StudyConfig>(alone)).arms[0].name == "base");
  alone["factors"] = config::parse_json(R"json({"model.placement": ["pre", "post"]})json");
  CHECK(make_plan(config::parse<StudyConfig>(alone)).arms[1].name == "placement=post");
}

TEST_CASE("an arm is compared with the reference at the same factors", "[study]") {
  Json study = config::parse_json(test::kStudy);
  study["factors"] = config::parse_json(R"json({"model.layers": [1, 2]})json");
  const auto references = [&] {
    std::vector<std::size_t> found;
    for (const Arm& arm : make_plan(config::parse<StudyConfig>(study)).arms)
      found.push_back(arm.reference);
    return found;
  };
  CHECK(references() == std::vector<std::size_t>{0, 1, 0, 1});
  study["reference"] = "two";
  CHECK(references() == std::vector<std::size_t>{2, 3, 2, 3});
  study["reference"] = "two, layers=1";
  CHECK(references() == std::vector<std::size_t>{2, 2, 2, 2});
  study["reference"] = "three";
  NORMA_CHECK_ERROR(references(), "reference: unknown arm \"three\"");
  study.erase("reference");
  study.erase("arms");
  CHECK(references() == std::vector<std::size_t>{0, 0});
}

TEST_CASE("what is wrong with an arm or a claim is said before anything runs", "[study]") {
  NORMA_CHECK_ERROR(plan_with("arms", R"json({"one": {"optimizer.lrr": 1}})json"),
                    "arm \"one\": optimizer.lrr");
  NORMA_CHECK_ERROR(plan_with("arms", R"json({"one": 3})json"),
                    "arms.one: expected an object of dotted keys; got 3");
  NORMA_CHECK_ERROR(plan_with("arms", R"json({"a b": {}, "a-b": {}})json"),
                    "another arm once more");
  NORMA_CHECK_ERROR(plan_with("factors", R"json({"optimizer.lr": 3})json"),
                    "expected a list of values; got 3");
  NORMA_CHECK_ERROR(plan_with("seeds", "[1, 1]"), "a seed stands twice");
  NORMA_CHECK_ERROR(plan_with("seeds", "[]"), "seeds");
  NORMA_CHECK_ERROR(plan_with("measures", R"json(["finale"])json"),
                    "unknown name \"finale\"; the nearest known name is \"final\"");
  NORMA_CHECK_ERROR(plan_with("measures", R"json(["loss"])json"),
                    "measures.0: column 1 of \"loss\": loss expects 1 number behind the arm");
  NORMA_CHECK_ERROR(
      plan_with("measures", R"json(["probe(arm, 0)"])json"),
      "probe expects the word arm, or the name of one in quotes, then a text in quotes");
  NORMA_CHECK_ERROR(plan_with("measures", R"json(["final('one')"])json"), "unknown arm \"one\"");
  NORMA_CHECK_ERROR(plan_with("measures", R"json(["= final"])json"),
                    "expected a measure, or `name = expression`");
  NORMA_CHECK_ERROR(plan_with("measures", R"json(["loss(1)"])json"), "loss expects the word arm");
  NORMA_CHECK_ERROR(
      plan_with("claims", R"json([{"text": "x", "expr": "final(\"three\") < 1"}])json"),
      "claims.0.expr: column 1");
  NORMA_CHECK_ERROR(plan_with("claims", R"json([{"text": "x", "expr": "1 + 1"}])json"),
                    "a claim must be a yes or no");
  NORMA_CHECK_ERROR(
      plan_with("claims", R"json([{"text": "x", "expr": "1 < 2", "expect": "fails"}])json"),
      "needs a sentence why");
  NORMA_CHECK_ERROR(
      plan_with("floors", R"json([{"label": "x", "expr": "mean(final(\"one\"))"}])json"),
      "does not depend on a run");
  NORMA_CHECK_ERROR(plan_with("floors", R"json([{"label": "x", "expr": "final(\"one\")"
}])json"),
                    "does not depend on a run");
  NORMA_CHECK_ERROR(plan_with("published", R"json({"final": {"ones": 3}})json"),
                    "published.final: unknown arm \"ones\"; the nearest known name is \"one\"");
  NORMA_CHECK_ERROR(plan_with("published", R"json({"final": {"x*": 3}})json"),
                    "published.final: \"x*\" matches no arm; the first arm is \"one\"");
  NORMA_CHECK_ERROR(plan_with("reference", "\"ones\""),
                    "reference: unknown arm \"ones\"; the nearest known name is \"one\"");
  NORMA_CHECK_ERROR(plan_with("reference", "\"zebra\""),
                    "reference: unknown arm \"zebra\"; known: \"one\", \"two\"");
  NORMA_CHECK_ERROR(plan_with("published", R"json({"final": {"one": "high"}})json"),
                    "published.final.one: expected a number, \"nan\" or \"inf\"; got \"high\"");
  NORMA_CHECK_ERROR(plan_with("published", R"json({"final": 3})json"),
                    "published.final: expected an object; got 3");
  NORMA_CHECK_ERROR(plan_with("arm", "{}"), "the nearest known name is \"arms\"");
  // All at once.
  const std::string both = error_of([] {
    (void)plan_with("arms", R"json({"one": {"optimizer.lrr": 1}, "two": {"train.step": 1}})json");
  });
  CHECK(norma::test::contains(both, "arm \"one\": "));
  CHECK(norma::test::contains(both, "arm \"two\": "));
}

TEST_CASE("claims know the numbers of the base that no arm changes", "[study]") {
  const Plan plan = plan_with("floors", R"json([{"label": "ln 8", "expr": "log(vocab)"}])json");
  CHECK(plan.floors[0].value == Approx(2.0794415416798357));
  NORMA_CHECK_ERROR(plan_with("floors", R"json([{"label": "x", "expr": "optimizer.lr"}])json"),
                    "unknown name \"optimizer.lr\"");
}

TEST_CASE("a study says when a run has surely failed, by the run's own numbers", "[study]") {
  Json study = config::parse_json(test::kStudy);
  study["stop_failed"] = config::parse_json(R"json({"above": "0.5*log(vocab)", "after": 10})json");
  study["factors"] = config::parse_json(R"json({"data.vocab": [8, 16]})json");
  const Plan plan = make_plan(config::parse<StudyConfig>(study));
  const auto stop = [&](std::size_t arm) { return plan.run(arm, 0).config["train"]["stop_above"]; };
  CHECK(stop(0)["loss"].get<double>() == Approx(0.5 * 2.0794415416798357));
  CHECK(stop(1)["loss"].get<double>() == Approx(0.5 * 2.772588722239781));
  CHECK(stop(0)["after"] == 10);
  CHECK(stop(0)["for"] == 50);
  study["stop_failed"]["above"] = "0.5*log(vocabs)";
  NORMA_CHECK_ERROR(make_plan(config::parse<StudyConfig>(study)),
                    "stop_failed.above: column 9 of \"0.5*log(vocabs)\": unknown name");
}

TEST_CASE("a slip in the base is said once, and no default counts as missing", "[study]") {
  Json study = config::parse_json(test::kStudy);
  study["base"].erase("optimizer");
  study["arms"]["one"]["optimizer.lr"] = 0.001;
  CHECK(error_of([&] { (void)make_plan(config::parse<StudyConfig>(study)); }).empty());
  study["base"]["model"]["widht"] = 8;
  const std::string error = error_of([&] { (void)make_plan(config::parse<StudyConfig>(study)); });
  CHECK(norma::test::contains(error, "every arm: model.widht: unknown key"));
  CHECK_FALSE(norma::test::contains(error, "problems"));
  CHECK_FALSE(norma::test::contains(error, "optimizer"));
}

TEST_CASE("a study and a run's configuration are told apart", "[study]") {
  const TemporaryFolder folder;
  std::ofstream(folder / "study.json") << test::kStudy;
  std::ofstream(folder / "run.json") << config::parse_json(test::kStudy)["base"].dump();
  NORMA_CHECK_ERROR(load_run_config(folder / "study.json"), "base: belongs to a study");
  // Nor is one whose base is still to be written.
  Json rest = config::parse_json(test::kStudy);
  rest.erase("base");
  std::ofstream(folder / "rest.json") << rest.dump();
  NORMA_CHECK_ERROR(load_run_config(folder / "rest.json"), "arms: belongs to a study");
  NORMA_CHECK_ERROR(load_study(folder / "run.json"), "this is the configuration of one run");
}

TEST_CASE("the base may be a file of its own", "[study]") {
  const TemporaryFolder folder;
  Json study = config::parse_json(test::kStudy);
  std::ofstream(folder / "base.json") << study["base"].dump();
  study["base"] = "base.json";
  std::ofstream(folder / "study.json") << study.dump();
  const Plan plan = make_plan(load_study(folder / "study.json"));
  CHECK(plan.runs[0].hash == make_plan(test::small_study()).runs[0].hash);
}

TEST_CASE("--set is of the study, or else of its base, and may be a file's", "[study]") {
  const TemporaryFolder folder;
  Json study = config::parse_json(test::kStudy);
  std::ofstream(folder / "whole.json") << study.dump();
  std::ofstream(folder / "base.json") << study["base"].dump();
  study["base"] = "base.json";
  std::ofstream(folder / "parts.json") << study.dump();
  const std::vector<std::string> sets = {"train.steps=3", "base.train.batch=5", "seeds=[7]"};
  for (const char* file : {"whole.json", "parts.json"}) {
    INFO(file);
    const Plan plan = make_plan(load_study(folder / file, sets));
    CHECK(plan.seeds == std::vector<std::int64_t>{7});
    for (const PlannedRun& run : plan.runs) {
      CHECK(run.config.at("train").at("steps") == 3);
      CHECK(run.config.at("train").at("batch") == 5);
    }
  }
  const std::vector<std::string> wrong = {"train.stepz=3"};
  NORMA_CHECK_ERROR(make_plan(load_study(folder / "whole.json", wrong)),
                    "train.stepz: unknown key; the nearest known name is \"steps\"");
}

TEST_CASE("paths of data are relative to the study's file, in arms and factors too", "[study]") {
  const TemporaryFolder folder;
  std::ofstream(folder / "a.txt") << "abababab abababab abababab";
  std::ofstream(folder / "b.txt") << "babababa babababa babababa";
  Json study = config::parse_json(test::kStudy);
  study["base"]["data"] = config::parse_json(R"({"type": "text", "path": "a.txt", "context": 4})");
  study["arms"] = config::parse_json(
      R"({"base": {}, "b": {"data.path": "b.txt"},
          "whole": {"data": {"type": "text", "path": "b.txt", "context": 8}}})");
  const auto paths = [&] {
    std::ofstream(folder / "study.json") << study.dump();
    std::vector<std::string> found;
    const Plan plan = make_plan(load_study(folder / "study.json"));
    for (std::size_t arm = 0; arm < plan.arms.size(); ++arm)
      found.push_back(plan.run(arm, 0).config["data"]["path"]);
    return found;
  };
  const std::string a = folder / "a.txt", b = folder / "b.txt";
  CHECK(paths() == std::vector<std::string>{a, b, b});
  study.erase("arms");
  study["factors"] = config::parse_json(R"({"data.path": ["b.txt", "a.txt"]})");
  CHECK(paths() == std::vector<std::string>{b, a});
  CHECK(make_plan(load_study(folder / "study.json")).arms[0].name == "path=b.txt");
}

TEST_CASE("a slug is a part of a path", "[study]") {
  CHECK(slug("post, 30 steps of warm-up") == "post-30-steps-of-warm-up");
  CHECK(slug("lr=0.01") == "lr-0.01");
  CHECK(slug("../..") != "../..");
  CHECK(slug("///") == "arm");
}

}  // namespace
}  // namespace norma::study
