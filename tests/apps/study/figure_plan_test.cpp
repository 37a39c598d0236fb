// Where the arms of a study stand in its figures.
#include "apps/study/figure_plan.h"

#include <cmath>

#include "tests/apps/study/support.h"
#include "tests/support/catch.h"

namespace norma::study {
namespace {

using norma::test::contains;

// Two named arms, depths and rates.
Plan grid(const std::string& figures) {
  Json json = config::parse_json(test::kStudy);
  json["arms"] = config::parse_json(
      R"({"pre": {"model.placement": "pre"}, "post": {"model.placement": "post"}})");
  json["factors"] =
      config::parse_json(R"({"model.layers": [2, 1, 3], "optimizer.lr": [0.01, 0.001, 0.1]})");
  json["figures"] = config::parse_json(figures);
  return make_plan(config::parse<StudyConfig>(json));
}

std::string problem_of(const std::string& type, const std::string& keys) {
  const std::string figure = R"([{"type": ")" + type + R"(", )" + keys + "}]";
  return norma::test::error_of([&] { (void)grid(figure); });
}

// Measures an arm as its number, so that an expression tells which arms it speaks of.
double number_of_arm(const Measure&, std::size_t arm, std::size_t, const MeasureArguments&) {
  return static_cast<double>(arm);
}

TEST_CASE("a heat map has a panel for each value of what is not on its axes", "[study][figures]") {
  const Plan plan = grid(R"json([{"type": "heat", "x": "optimizer.lr", "y": "model.layers",
                                  "fails_above": "0.5 * log(vocab)"}])json");
  const PlannedFigure& figure = plan.figures.at(0);
  CHECK(figure.panels == std::vector<std::string>{"pre", "post"});
  REQUIRE(figure.x.size() == 3);
  CHECK(figure.x[0].label == "0.001");  // ascending, whatever the order in the file
  CHECK(figure.x[2].value == 0.1);
  CHECK(figure.y[0].label == "1");
  REQUIRE(figure.entries.size() == 18);
  for (const FigureEntry& e : figure.entries) {
    const Json& settings = plan.arms[e.arm].settings;
    CHECK(settings["optimizer.lr"] == figure.x[e.x].value);
    CHECK(settings["model.layers"] == figure.y[e.y].value);
    CHECK(plan.arms[e.arm].named == figure.panels[e.panel]);
    CHECK(e.value->evaluate(number_of_arm).values[0] == static_cast<double>(e.arm));
  }
  CHECK(*figure.fails_above == Approx(0.5 * std::log(8)));
}

TEST_CASE("a line has one for each arm of the other factors", "[study][figures]") {
  const Plan plan = grid(R"json([{"type": "line", "x": "model.layers", "panels": "arms",
      "arms": "*lr=0.01|*lr=0.1", "value": "final(arm) - final('pre, layers=1, lr=0.1')"}])json");
  const PlannedFigure& figure = plan.figures.at(0);
  CHECK(figure.panels == std::vector<std::string>{"pre", "post"});
  CHECK(figure.series == std::vector<std::string>{"lr=0.01", "lr=0.1"});
  CHECK(figure.entries.size() == 12);
  REQUIRE(plan.arms[5].name == "pre, layers=1, lr=0.1");
  CHECK(figure.entries[0].value->evaluate(number_of_arm).values[0] ==
        static_cast<double>(figure.entries[0].arm) - 5);
}

TEST_CASE("curves are chosen by globs, and those of one label have one colour",
          "[study][figures]") {
  const Plan plan =
      grid(R"([{"type": "curves", "arms": "pre*lr=0.1|post*lr=0.1", "panels": "arms"}])");
  CHECK(plan.figures.at(0).entries.size() == 6);
  CHECK(plan.figures[0].series.size() == 3);
}

TEST_CASE("what is wrong with a figure is said before anything runs", "[study][figures]") {
  const std::string axes = R"("x": "optimizer.lr", "y": "model.layers")";
  CHECK(contains(problem_of("heat", R"("x": "optimizer.rate", "y": "model.layers")"),
                 "figures.0.x: no factor or setting of the arms is called \"optimizer.rate\""));
  CHECK(contains(problem_of("curves", R"("arms": "keel*")"),
                 "\"keel*\" matches no arm; the first arm is \""));
  CHECK(contains(problem_of("curves", R"("value": "stream.rms.blocks.0")"),
                 "train.probe_every is not set"));
  CHECK(contains(problem_of("profile", R"("value": "stream.rms.blocks.0")"),
                 "expected one * where the depth stands"));
  CHECK(contains(problem_of("line", R"json("x": "model.layers", "value": "fnal(arm)")json"),
                 "unknown function \"fnal\""));
  CHECK(contains(problem_of("line", R"json("x": "model.layers", "value": "final(arm) < 1")json"),
                 "expected a number; got a yes or no"));
  CHECK(
      contains(problem_of("heat", R"("x": "model.layers", "y": "model.layers", "panels": "arms")"),
               "come to the same place; choose between them with a glob in \"arms\", or leave "
               "\"panels\" out"));
  // Without panels there are none to leave out.
  CHECK(contains(problem_of("heat", R"("x": "model.width", "y": "model.layers")"),
                 "come to the same place; choose between them with a glob in \"arms\", or give "
                 "\"panels\": \"arms\""));
  CHECK(contains(problem_of("line", R"("x": "model.width", "panels": "model.layers")"),
                 "come to the same place; choose between them with a glob in \"arms\", or give "
                 "\"panels\": \"arms\""));
  CHECK(contains(problem_of("pie", axes), "unknown type \"pie\""));
  CHECK(contains(
      problem_of("heat", axes + R"json(, "fails_above": "final('pre, layers=1, lr=0.1')")json"),
      "must be a number that does not depend on a run"));
}

TEST_CASE("without figures in the file there are those that fit the factors", "[study][figures]") {
  const Plan plan = grid("null");
  REQUIRE(plan.figures.size() == 2);
  CHECK(plan.figures[0].config.get_if<HeatConfig>() != nullptr);
  CHECK(plan.figures[1].config.get_if<CurvesConfig>()->panels == "arms");  // 18 curves are many
  const Plan plain = make_plan(test::small_study());
  REQUIRE(plain.figures.size() == 1);
  CHECK(plain.figures[0].config.get_if<CurvesConfig>()->panels.empty());
  CHECK(plain.figures[0].series == std::vector<std::string>{"one", "two"});
}

}  // namespace
}  // namespace norma::study
