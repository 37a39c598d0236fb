// Reports and their pictures.
#include "apps/report/report.h"

#include <cmath>
#include <regex>

#include "apps/report/page.h"
#include "apps/report/svg_plot.h"
#include "apps/report/tables.h"
#include "apps/report/text_plot.h"
#include "tests/apps/study/support.h"
#include "tests/support/catch.h"

namespace norma::report {
namespace {

using norma::test::contains;

study::RunRecord falling_run(double end) {
  study::RunRecord run;
  run.outcome = study::Outcome::completed;
  run.seconds = 2;
  for (int step = 1; step <= 40; ++step) {
    run.train.push_back({step, end + (2 - end) * std::exp(-step / 8.0), 1e-3, 1.0 / step});
  }
  run.evaluations = {{20, "validation", 1.0, 0.5}, {40, "validation", 0.9, 0.6}};
  return run;
}

study::Plan plan_of_four() {
  study::StudyConfig config = study::test::small_study(R"json([
    {"text": "One <learns> & two does not.", "expr": "final(\"one\") < final(\"two\")", "published": "0.1"}])json");
  config.floors = {{"guessing, ln 8", "log(vocab)"}};
  return study::make_plan(config);
}

TEST_CASE("a report is one file with everything in it, and nothing outside it", "[report]") {
  const study::Plan plan = plan_of_four();
  const study::StudyResults results =
      study::judge(plan, {falling_run(0.1), falling_run(1.9), falling_run(0.2), falling_run(1.8)});
  const std::string html = html_report(subject_of(results));
  CHECK(html.starts_with("<!DOCTYPE html>"));
  // Loss, rate, gradient, evaluation's loss and accuracy.
  const std::regex svg("role=\"img\"");
  CHECK(std::distance(std::sregex_iterator(html.begin(), html.end(), svg), {}) == 5);
  CHECK(contains(html, "One &lt;learns&gt; &amp; two does not."));
  CHECK(contains(html, ">held<"));
  CHECK(contains(html, ">guessing, ln 8 = 2.079</text>"));
  CHECK(contains(html, "optimizer.lr"));  // the setting that differs
  CHECK(contains(html, "1 of 1 claims came out as expected"));
  // No address but the names of XML's vocabularies, which nobody fetches.
  const std::string bare = std::regex_replace(html, std::regex("xmlns(:xlink)?=\"[^\"]*\""), "");
  for (const char* outside :
       {"http:", "https:", "url(", "@import", "<script", "<link", "<img", "<?xml", "src="}) {
    INFO(outside);
    CHECK_FALSE(contains(bare, outside));
  }
  // The colours come from the style sheet alone, so that they fit light and dark.
  CHECK(contains(html, "var(--c1)"));
  CHECK_FALSE(contains(html, "247)"));
}

TEST_CASE("claims and runs that went wrong are seen in the report", "[report]") {
  const study::Plan plan = plan_of_four();
  std::vector<study::RunRecord> runs = {falling_run(1.9), falling_run(0.1), falling_run(1.8),
                                        falling_run(0.2)};
  CHECK(contains(html_report(subject_of(study::judge(plan, runs))), ">did not hold<"));
  runs[0].outcome = study::Outcome::failed;
  runs[0].reason = "no <memory>";
  const std::string html = html_report(subject_of(study::judge(plan, runs)));
  CHECK(contains(html, ">no result<"));
  CHECK(contains(html, "no &lt;memory&gt;"));
  runs[0].outcome = study::Outcome::interrupted;
  CHECK(contains(html_report(subject_of(study::judge(plan, runs))), ">interrupted<"));
  for (study::RunRecord& run : runs) run = {};  // nothing was run
  CHECK(contains(html_report(subject_of(study::judge(plan, runs))), "missing"));
}

TEST_CASE("a picture for documents stands alone, on white", "[report]") {
  const study::Plan plan = plan_of_four();
  const std::string svg = paper_svg(subject_of(study::judge(
      plan, {falling_run(0.1), falling_run(1.9), falling_run(0.2), falling_run(1.8)})));
  CHECK(contains(svg, "A small study"));
  CHECK(contains(svg, ">one<"));
  CHECK(contains(svg, "#0072b2"));
  CHECK_FALSE(contains(svg, "var("));
}

TEST_CASE("names with signs of HTML are text in a picture", "[report]") {
  Chart chart;
  chart.title = "<script>\"&";
  chart.y_label = "a & <b>";
  chart.curves.push_back({"it's <\"&>", 0, {1, 2}, {1, 2}});
  for (const bool paper : {false, true}) {
    SvgOptions options;
    options.paper = paper;
    const std::string svg = draw_svg(chart, options);
    CHECK(contains(svg, "<title>&lt;script&gt;&quot;&amp;</title>"));
    CHECK(contains(svg, "a &amp; &lt;b&gt;"));
    CHECK(contains(svg, "it's &lt;&quot;&amp;&gt;"));
    CHECK_FALSE(contains(svg, "<script"));
    CHECK_FALSE(contains(svg, "<b>"));
  }
}

TEST_CASE("a curve is the mean over the runs, with the band around it", "[report]") {
  std::vector<study::RunRecord> runs = {study::test::flat_run(1), study::test::flat_run(3)};
  runs[1].train.resize(5);
  runs[1].train[2].loss = INFINITY;  // left out
  const auto losses = [](const std::vector<study::RunRecord>& records) {
    std::vector<std::vector<Point>> points(records.size());
    for (std::size_t i = 0; i < records.size(); ++i) {
      for (const study::TrainPoint& p : records[i].train)
        points[i].push_back({static_cast<double>(p.step), p.loss});
    }
    return points;
  };
  const Curve curve = mean_curve("x", 2, losses(runs), 1);
  REQUIRE(curve.x.size() == 20);
  CHECK(curve.y[0] == 2);
  CHECK(curve.low[0] == 1);
  CHECK(curve.high[0] == 3);
  CHECK(curve.y[2] == 1);
  CHECK(curve.y[19] == 1);
  study::RunRecord rising;
  for (int step = 1; step <= 9; ++step)
    rising.train.push_back({step, static_cast<double>(step), 0, 0});
  const Curve smooth = mean_curve("x", 0, losses({rising}), 5);
  for (std::size_t i = 0; i < 9; ++i)
    CHECK(smooth.y[i] == Approx(smooth.x[i]));  // a line stays one
  CHECK(smooth.low.empty());
  CHECK(smoothing_window(50) == 1);
  CHECK(smoothing_window(600) % 2 == 1);
}

TEST_CASE("the range of a picture", "[report]") {
  Chart chart;
  chart.from_zero = true;
  chart.curves.push_back({"a", 0, {1, 2}, {4, 1}});
  CHECK(y_range(chart).low == 0);
  CHECK(y_range(chart).high == Approx(4.24));
  chart.curves.push_back({"b", 1, {1, 2}, {4, 1e9}});  // explodes
  CHECK(y_range(chart).high > 1e9);
  chart.cut_explosions = true;
  CHECK(y_range(chart).high < 13);
  CHECK(y_range(Chart{}).low < y_range(Chart{}).high);
}

TEST_CASE("a plot in letters has each curve at its height, and its name beside it", "[report]") {
  Chart chart;
  chart.title = "title";
  chart.x_label = "step";
  chart.from_zero = true;
  chart.levels = {{"ln 64", 4}};
  chart.curves.push_back({"low", 0, {0, 1, 2}, {0, 0, 0}});
  chart.curves.push_back({"falls", 1, {0, 1, 2}, {4, 2, 0}});
  const std::string plot = text_plot(chart, {.width = 21, .height = 9});
  INFO(plot);
  CHECK(contains(plot, "ln 64 = 4.000"));
  CHECK(contains(plot, "* low\n"));
  CHECK(contains(plot, "o falls\n"));
  CHECK(contains(plot, "0       step        2\n"));
  CHECK_FALSE(contains(plot, "\033"));
  CHECK(contains(text_plot(chart, {.colors = true}), "\033[34m"));
  chart.curves.push_back({"ninth", 8, {0, 2}, {3, 3}});  // the color of the first, its own sign
  CHECK_FALSE(contains(text_plot(chart), "* ninth"));
  for (std::size_t i = 9; i < 40; ++i) {  // more than there are rows
    chart.curves.push_back({fmt::format("curve {}", i), i, {0, 2}, {3, 3}});
  }
  const std::string full = text_plot(chart, {.width = 21, .height = 9});
  for (const Curve& curve : chart.curves) CHECK(contains(full, " " + curve.label + "\n"));
  CHECK(text_plot(Chart{}).empty());
}

TEST_CASE("the configuration of a run has every setting, and marks what is not the default",
          "[report]") {
  const study::Plan plan = study::make_plan(study::test::small_study());
  study::Json config = plan.runs[0].config;
  config["optimizer"]["lr"] = 0.25;
  const std::string html = configuration_html(config);
  const std::string mark = "<strong>\u2022 ";
  CHECK(contains(html, mark + "optimizer.lr</strong>"));
  CHECK(contains(html, "<strong><code>0.25</code></strong></td><td><code>0.001</code></td>"));
  CHECK(contains(html, mark + "data.vocab</strong>"));
  CHECK(contains(html, mark + "model.layers</strong>"));  // has no default
  CHECK(contains(html, ">train.clip_norm</th>"));
  CHECK_FALSE(contains(html, mark + "optimizer.type"));  // adamw is the default
  CHECK_FALSE(contains(html, mark + "train.clip_norm"));
}

TEST_CASE("of a list of layers, the report tells the one setting that differs", "[report]") {
  const auto html_of = [](const char* first, const char* second) {
    Subject subject;
    for (const char* model : {first, second}) {
      Subject::Arm arm;
      arm.config["model"] = config::parse_json(model);
      subject.arms.push_back(std::move(arm));
    }
    return settings_html(subject);
  };
  const char* const two = R"({"betas": [0.9, 0.99],
    "layers": [{"type": "linear", "out": 32}, {"type": "linear", "out": 8}]})";
  const std::string html = html_of(two, R"({"betas": [0.9, 0.95],
    "layers": [{"type": "linear", "out": 64}, {"type": "linear", "out": 8}]})");
  CHECK(contains(html, ">model.layers.0.out</th>"));
  CHECK(contains(html, "<code>32</code>"));
  CHECK(contains(html, "<code>64</code>"));
  CHECK_FALSE(contains(html, "linear"));
  CHECK_FALSE(contains(html, "layers.1"));
  CHECK(contains(html, "<code>[0.9,0.95]</code>"));  // plain values are one setting
  // Of another length, places do not belong to each other.
  const std::string other = html_of(two, R"({"betas": [0.9, 0.99],
    "layers": [{"type": "linear", "out": 8}]})");
  CHECK(contains(other, ">model.layers</th>"));
  CHECK_FALSE(contains(other, "layers.0"));
  // A layer that is an object in one and missing in the other, or of another type.
  CHECK(contains(html_of(two, R"({"betas": 1})"), ">model.layers</th>"));
  CHECK(html_of(two, two).empty());
}

TEST_CASE("text is escaped on a page", "[report]") {
  CHECK(escaped("a<b & \"c\">") == "a&lt;b &amp; &quot;c&quot;&gt;");
}

}  // namespace
}  // namespace norma::report
