// Figures from what runs have left.
#include "apps/report/figures.h"

#include <cmath>

#include "apps/report/axis.h"
#include "apps/report/floors.h"
#include "apps/report/svg_plot.h"
#include "tests/apps/study/support.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

namespace norma::report {
namespace {

using norma::test::contains;
using study::Outcome;
using study::test::flat_run;

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++n;
  return n;
}

// A study of one factor of two values, two arms, two seeds, and one figure.
study::Plan plan_with(const std::string& figure) {
  study::Json json = config::parse_json(study::test::kStudy);
  json["arms"] =
      config::parse_json(R"({"a<b": {"optimizer.lr": 0.001}, "c&d": {"optimizer.lr": 0.002}})");
  json["factors"] = config::parse_json(R"({"model.layers": [1, 2], "train.batch": [2, 4]})");
  json["base"]["train"]["probe_every"] = 1;
  json["figures"] = config::parse_json("[" + figure + "]");
  return study::make_plan(config::parse<study::StudyConfig>(json));
}

Subject subject_with(const study::Plan& plan, std::vector<study::RunRecord> runs) {
  return subject_of(study::judge(plan, std::move(runs)));
}

constexpr const char* kHeat = R"({"type": "heat", "x": "train.batch", "y": "model.layers"})";

TEST_CASE("a heat map has numbers in its cells and marks those that failed", "[report][figures]") {
  const study::Plan plan = plan_with(kHeat);
  std::vector<study::RunRecord> runs(16, flat_run(0.5));
  const auto at = [&](std::size_t arm, std::size_t seed) -> study::RunRecord& {
    return runs[seed * 8 + arm];
  };
  at(0, 0) = flat_run(0.25);  // of the seeds 0.25 and 0.75
  at(0, 1) = flat_run(0.75);
  at(1, 0) = at(1, 1) = flat_run(2.05);                  // above 0.97 ln 8 = 2.017
  at(2, 0) = at(2, 1) = flat_run(1, Outcome::diverged);  // infinite
  at(3, 1) = flat_run(1, Outcome::diverged);             // one of two
  at(4, 0) = at(4, 1) = study::RunRecord{};              // was not run
  const Subject subject = subject_with(plan, runs);
  const Drawing drawing = drawing_of(plan.figures[0], subject);
  REQUIRE(drawing.maps.size() == 2);
  const std::vector<HeatCell>& cells = drawing.maps[0].cells;
  CHECK(cells[0].value == Approx(0.5));
  CHECK(cells[0].failed == 0);
  CHECK(cells[1].failed == 2);
  CHECK(cells[2].failed == 2);
  CHECK_FALSE(std::isfinite(cells[2].value));
  CHECK(cells[3].failed == 1);
  CHECK(cells[3].value == Approx(0.5));
  CHECK(drawing.maps[1].cells[0].runs == 0);
  CHECK(drawing.scale.high == Approx(0.5));  // what failed does not stretch the colours
  const std::string html = figure_html(plan.figures[0], subject);
  CHECK(contains(html, ">\u00d7 2.05<"));
  CHECK(contains(html, ">0.50 \u00d71<"));
  CHECK(contains(html, "Hatched, \u00d7: failed, above 2.017 or not finite."));
  CHECK(contains(html, "<p class=\"panel\">a&lt;b</p>"));
  CHECK(contains(html, "c&amp;d, layers=1, batch=2: -, -"));
  CHECK(count(html, "role=\"img\"") == 3);  // two panels and the key
  CHECK(count(html, "<title>") == 3 + 8);   // and each cell tells its runs
  CHECK_FALSE(contains(html, "<b:"));
}

TEST_CASE("a profile has a point a depth, at the step that is asked for", "[report][figures]") {
  const study::Plan plan = plan_with(
      R"({"type": "profile", "value": "grad.blocks.*.w", "step": 2, "arms": "a<b, layers=1, batch=2"})");
  std::vector<study::RunRecord> runs(16, flat_run(1));
  const ProbeValues values = {{"grad.blocks.10.w", 100}, {"grad.blocks.0.w", 1},
                              {"grad.blocks.2.w", NAN},  {"grad.blocks.0.wx", 7},
                              {"grad.blocks.3.v.w", 7},  {"grad.blocks..w", 7}};
  runs[0].probes = {{0, {{"grad.blocks.0.w", 9}}}, {2, values}};
  runs[8].probes = {{2, {{"grad.blocks.0.w", 3}}}};
  const Drawing drawing = drawing_of(plan.figures[0], subject_with(plan, runs));
  const Curve& curve = drawing.charts.at(0).curves.at(0);
  CHECK(curve.x == std::vector<double>{0, 10});
  CHECK(curve.y == std::vector<double>{2, 100});
  CHECK(curve.low[0] == 1);
  CHECK(drawing.charts[0].log_y);  // a factor of 100
}

TEST_CASE("a line leaves out what is not finite, and says so", "[report][figures]") {
  const study::Plan plan = plan_with(
      R"json({"type": "line", "x": "model.layers", "arms": "*batch=2", "value": "2*final(arm)"})json");
  std::vector<study::RunRecord> runs(16, flat_run(1));
  runs[8] = flat_run(2);
  runs[2] = runs[10] = flat_run(1, Outcome::diverged);
  const Drawing drawing = drawing_of(plan.figures[0], subject_with(plan, runs));
  const Curve& curve = drawing.charts.at(0).curves.at(0);
  CHECK(curve.x == std::vector<double>{1});
  CHECK(curve.y[0] == 3);
  CHECK(curve.high[0] == 4);
  CHECK(contains(drawing.note, "1 of 4 points are not shown"));
}

TEST_CASE("where no run has left anything a sentence stands", "[report][figures]") {
  for (const char* figure :
       {R"({"type": "curves"})", R"({"type": "curves", "value": "grad.whole"})",
        R"({"type": "profile", "value": "stream.rms.blocks.*"})",
        R"({"type": "line", "x": "model.layers"})"}) {
    INFO(figure);
    const study::Plan plan = plan_with(figure);
    const Subject subject = subject_with(plan, std::vector<study::RunRecord>(16));
    CHECK(contains(figure_html(plan.figures[0], subject), "No run has left values"));
    CHECK(thumbnail_svg(plan.figures[0], subject).empty());
  }
  const study::Plan plan = plan_with(kHeat);  // its cells say it
  const Subject subject = subject_with(plan, std::vector<study::RunRecord>(16));
  CHECK(count(figure_html(plan.figures[0], subject), ">-</text>") == 8);
}

TEST_CASE("the deviation of the seeds instead of their range", "[report][figures]") {
  const std::vector<std::vector<Point>> runs = {{{1, 1}}, {{1, 3}}};
  const Curve range = mean_curve("", 0, runs, 1),
              deviation = mean_curve("", 0, runs, 1, study::BandKind::deviation);
  CHECK(range.high[0] == 3);
  CHECK(deviation.high[0] == Approx(2 + std::sqrt(2.0)));
  CHECK(deviation.low[0] == Approx(2 - std::sqrt(2.0)));
}

TEST_CASE("pictures of odd data are still pictures", "[report][figures]") {
  const auto drawn = [](Curve curve, bool log) {
    Chart chart;
    chart.log_x = chart.log_y = log;
    chart.curves.push_back(std::move(curve));
    return draw_svg(chart);
  };
  for (const bool log : {false, true}) {
    for (const auto& y : std::vector<std::vector<double>>{
             {1}, {0}, {-1}, {1, 1}, {NAN, 1}, {INFINITY, 1}, {1e300, 1e-300}, {0, 0}}) {
      Curve curve{"x", 0, {}, y};
      for (std::size_t i = 0; i < y.size(); ++i) curve.x.push_back(static_cast<double>(i));
      std::string svg = drawn(curve, log);
      svg.erase(svg.find("<desc>"), svg.find("</desc>") - svg.find("<desc>"));  // words
      INFO(svg);
      CHECK(contains(svg, "</svg>"));
      CHECK_FALSE(contains(svg, "nan"));
      CHECK_FALSE(contains(svg, "inf"));
    }
  }
  // A long curve is thinned, and keeps its spike.
  Curve curve{"x", 0, {}, {}};
  for (int i = 0; i < 100'000; ++i) {
    curve.x.push_back(i);
    curve.y.push_back(i == 77'777 ? 10 : 1);
  }
  const std::string svg = drawn(curve, false);
  CHECK(svg.size() < 30'000);
  Chart chart;
  chart.y_given = Range{0, 11};
  chart.curves = {curve};
  const std::string with = draw_svg(chart);
  chart.curves[0].y[77'777] = 1;
  CHECK(with != draw_svg(chart));
}

TEST_CASE("the marks of an axis stand at round numbers", "[report][figures]") {
  const auto labels = [](const Axis& axis) {
    std::vector<std::string> text;
    for (const Tick& tick : axis.ticks) text.push_back(tick.label);
    return text;
  };
  CHECK(labels(make_axis(0, 4.3, false, 5)) == std::vector<std::string>{"0", "1", "2", "3", "4"});
  CHECK(labels(make_axis(0.09, 1.1, true, 5)) ==
        std::vector<std::string>{"0.1", "0.2", "0.5", "1"});
  CHECK(labels(make_axis(1e-4, 1e4, true, 9)).front() == "0.0001");
  CHECK(labels(make_axis(2.2, 2.9, true, 4)).size() >= 2);  // no 1, 2, 5 in it but plain numbers
  CHECK(make_axis(3, 3, false, 5).place(3) == Approx(0.5));
  // A constant rate with its rounding errors.
  const Axis rounded = make_axis(0.003, std::nextafter(0.003, 1), false, 4);
  CHECK(rounded.ticks.size() < 8);
  CHECK(rounded.place(0.003) == Approx(0.5).margin(0.1));
  CHECK(make_axis(0, INFINITY, true, 4).ticks.size() < 12);
  CHECK(make_axis(-INFINITY, INFINITY, false, 4).ticks.size() < 12);
  CHECK(short_number(0.4) == "0.40");
  CHECK(short_number(12.34) == "12.3");
  CHECK(short_number(0.05512) == "0.0551");
  CHECK(short_number(0) == "0");
}

TEST_CASE("floors of a text: ln V, and the entropy of a token alone and behind another",
          "[report][figures]") {
  // abababab...: a token is one of two, and certain behind the one before it.
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 200; ++i) text += "ab";
  write_file(folder / "t.txt", text);
  study::Json run = config::parse_json(study::test::kStudy)["base"];
  run["data"] = {{"type", "text"}, {"path", (folder / "t.txt")}, {"context", 8}};
  const DataFloors floors = floors_of(run);
  REQUIRE(floors.levels.size() == 3);
  CHECK(floors.levels[0].y == Approx(std::log(2)));
  CHECK(floors.levels[1].y == Approx(std::log(2)));
  CHECK(floors.levels[2].y == Approx(0).margin(1e-12));
  run["data"]["path"] = "/nonexistent";
  CHECK(floors_of(run).levels.empty());
  const double counts[] = {1, 1, 2};
  CHECK(entropy_of(counts) == Approx(1.5 * std::log(2)));
}

}  // namespace
}  // namespace norma::report
