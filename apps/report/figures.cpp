#include "apps/report/figures.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "apps/report/axis.h"
#include "apps/report/heat_map.h"
#include "apps/study/measures.h"

namespace norma::report {
namespace {

using study::BandKind;
using study::FigureEntry;
using study::PlannedFigure;
using study::RunRecord;

constexpr double kLogFactor = 8;    // a span from which a factor does
constexpr std::size_t kMarked = 8;  // depths of a profile whose points are marked
constexpr double kFailed = 0.97;    // of ln V: a loss above it has learned nothing

// --- Values of a run. ---
bool is_loss(std::string_view value) { return value == "loss" || value == "eval"; }
bool is_training(std::string_view value) {
  return value == "loss" || value == "lr" || value == "grad_norm";
}

std::vector<Point> along_the_run(const RunRecord& run, const std::string& value) {
  std::vector<Point> points;
  const auto add = [&](std::int64_t step, double y) {
    points.push_back({static_cast<double>(step), y});
  };
  if (is_training(value)) {
    for (const study::TrainPoint& p : run.train) {
      add(p.step, value == "loss" ? p.loss : value == "lr" ? p.lr : p.grad_norm);
    }
  } else if (value == "eval" || value == "accuracy") {
    for (const study::EvalPoint& p : run.evaluations) {
      add(p.step, value == "eval" ? p.loss : p.accuracy.value_or(study::kMissing));
    }
  } else {
    for (const study::ProbePoint& p : run.probes) add(p.step, probe_value(p.values, value));
  }
  return points;
}

// What a probe found at each number that stands for the * of `pattern`.
std::vector<Point> by_depth(const RunRecord& run, const study::ProfileConfig& config) {
  const std::size_t star = config.value.find('*');
  const std::string before = config.value.substr(0, star), after = config.value.substr(star + 1);
  std::vector<Point> points;
  for (const study::ProbePoint& probe : run.probes) {
    if (probe.step != config.step) continue;
    for (const auto& [name, value] : probe.values) {
      if (name.size() <= before.size() + after.size() || !name.starts_with(before) ||
          !name.ends_with(after))
        continue;
      const char* end = name.data() + name.size() - after.size();
      std::int64_t depth = 0;
      const auto [stop, error] = std::from_chars(name.data() + before.size(), end, depth);
      if (error == std::errc() && stop == end)
        points.push_back({static_cast<double>(depth), value});
    }
  }
  std::stable_sort(points.begin(), points.end(),
                   [](const Point& a, const Point& b) { return a.x < b.x; });
  if (config.relative && points.size() > 1) {
    const double last = points.back().x;
    for (Point& p : points) p.x /= last;
  }
  return points;
}

std::vector<double> evaluated(const FigureEntry& entry, const Subject& subject) {
  const study::MeasureValue measured = [&](const study::Measure& measure, std::size_t arm,
                                           std::size_t seed,
                                           const study::MeasureArguments& arguments) {
    return measure.of(subject.arms[arm].runs[seed], arguments);
  };
  return entry.value ? entry.value->evaluate(measured).values : std::vector<double>{};
}

// --- Words. ---
std::string label_of(const std::string& value) {
  if (value == "loss") return "training loss (nats)";
  if (value == "lr") return "learning rate";
  if (value == "grad_norm") return "norm of the gradient";
  if (value == "eval") return "evaluation loss (nats)";
  if (value == "final") return "final loss (nats)";
  if (value == "best") return "best loss (nats)";
  if (value == "seconds") return "seconds";
  return value;
}

// "model.layers" as an axis says it.
std::string label_of_key(const std::string& key) {
  static constexpr std::pair<std::string_view, std::string_view> kKnown[] = {
      {"optimizer.lr", "learning rate"},
      {"model.layers", "blocks"},
      {"schedule.warmup_steps", "warm-up (steps)"},
      {"train.batch", "batch (samples)"}};
  for (const auto& [known, label] : kKnown) {
    if (key == known) return std::string(label);
  }
  return key;
}

std::string with_capital(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

std::string title_of(const study::FigureOptions& options, const std::string& usual) {
  // An expression and the name of a probe's value stay as they are written.
  const bool words = usual.substr(0, usual.find(" by ")).find_first_of("(.") == std::string::npos ||
                     usual.find(" (nats)") != std::string::npos;
  return !options.title.empty() ? options.title : words ? with_capital(usual) : usual;
}

std::string seeds_note(const Subject& subject, BandKind kind, const char* mark) {
  std::size_t runs = 0;
  for (const auto& arm : subject.arms) runs = std::max(runs, arm.runs.size());
  if (runs < 2) return "";
  return fmt::format(
      "Line: mean over {} seeds; {}: {}. ", runs, mark,
      kind == BandKind::range ? "lowest to highest seed" : "one standard deviation to each side");
}

std::string note_of(const study::FigureOptions& options, std::string note) {
  while (!note.empty() && note.back() == ' ') note.pop_back();
  if (options.caption.empty() || note.empty()) return options.caption + note;
  return options.caption + " " + note;
}

// --- Curves, profiles and lines: charts, one a panel. ---
std::size_t longest_run(const Subject& subject) {
  std::size_t longest = 0;
  for (const auto& arm : subject.arms) {
    for (const RunRecord& run : arm.runs) longest = std::max(longest, run.train.size());
  }
  return longest;
}

std::size_t window_of(const study::CurvesConfig& config, const Subject& subject) {
  if (config.smooth) return static_cast<std::size_t>(*config.smooth) | 1;
  return config.value == "loss" ? smoothing_window(longest_run(subject)) : 1;
}

std::vector<std::vector<Point>> runs_of(const Subject& subject, std::size_t arm, auto points) {
  std::vector<std::vector<Point>> runs;
  for (const RunRecord& run : subject.arms[arm].runs) runs.push_back(points(run));
  return runs;
}

// One range of y for all panels, so that they can be compared.
void share_range(std::vector<Chart>& charts) {
  if (charts.size() < 2) return;
  Chart all = charts[0];
  for (std::size_t i = 1; i < charts.size(); ++i)
    all.curves.insert(all.curves.end(), charts[i].curves.begin(), charts[i].curves.end());
  const Range range = y_range(all);
  for (Chart& chart : charts) chart.y_given = range;
}

Drawing charts_drawing(const study::FigureOptions& options, const PlannedFigure& figure,
                       std::vector<Chart> charts, const std::string& usual_title,
                       const std::string& note) {
  share_range(charts);
  Drawing drawing;
  drawing.title = title_of(options, usual_title);
  drawing.note = note_of(options, note);
  drawing.panels = figure.panels;
  for (std::size_t i = 0; i < charts.size(); ++i) {
    charts[i].title =
        figure.panels[i].empty() ? drawing.title : drawing.title + ": " + figure.panels[i];
  }
  drawing.charts = std::move(charts);
  for (std::size_t i = 0; i < figure.series.size(); ++i) {
    if (figure.series.size() > 1 || !figure.series[i].empty())
      drawing.keys.push_back({i, figure.series[i]});
  }
  return drawing;
}

Chart empty_curves(const study::CurvesConfig& config, const Subject& subject) {
  Chart chart;
  chart.x_label = "optimizer step";
  chart.y_label = label_of(config.value);
  chart.log_x = config.log_x;
  if (is_loss(config.value)) chart.levels = subject.levels;
  chart.from_zero = chart.cut_explosions = is_loss(config.value) && !config.log_y.value_or(false);
  return chart;
}

Curve curve_of(const study::CurvesConfig& config, const Subject& subject, std::size_t arm,
               const std::string& label, std::size_t color) {
  const auto runs =
      runs_of(subject, arm, [&](const RunRecord& run) { return along_the_run(run, config.value); });
  return mean_curve(label, color, runs, window_of(config, subject), config.band);
}

Drawing draw(const study::CurvesConfig& config, const PlannedFigure& figure,
             const Subject& subject) {
  const std::size_t window = window_of(config, subject);
  std::vector<Chart> charts(figure.panels.size(), empty_curves(config, subject));
  for (const FigureEntry& e : figure.entries) {
    charts[e.panel].curves.push_back(
        curve_of(config, subject, e.arm, figure.series[e.series], e.series));
  }
  const bool magnitude =
      !is_loss(config.value) && config.value != "lr" && config.value != "accuracy";
  const bool log = config.log_y.value_or(
      magnitude && std::all_of(charts.begin(), charts.end(),
                               [](const Chart& c) { return c.empty() || all_positive(c); }));
  for (Chart& chart : charts) chart.log_y = log;
  std::string note = seeds_note(subject, config.band, "band");
  if (window > 1)
    note += fmt::format("Smoothed over {} records; faint: as they are on record.", window);
  return charts_drawing(config, figure, std::move(charts), label_of(config.value), note);
}

Drawing draw(const study::ProfileConfig& config, const PlannedFigure& figure,
             const Subject& subject) {
  Chart empty;
  empty.x_label = config.relative ? "depth, by the number of blocks" : "block";
  empty.y_label = config.value;
  std::vector<Chart> charts(figure.panels.size(), empty);
  bool log = config.log_y.value_or(false);
  for (const FigureEntry& e : figure.entries) {
    const auto runs =
        runs_of(subject, e.arm, [&](const RunRecord& run) { return by_depth(run, config); });
    charts[e.panel].curves.push_back(
        mean_curve(figure.series[e.series], e.series, runs, 1, config.band));
  }
  Chart all = empty;
  for (const Chart& c : charts)
    all.curves.insert(all.curves.end(), c.curves.begin(), c.curves.end());
  if (!config.log_y) log = spans(all, kLogFrom);
  const bool few = std::all_of(all.curves.begin(), all.curves.end(),
                               [](const Curve& c) { return c.x.size() <= kMarked; });
  for (Chart& chart : charts) {
    chart.log_y = log && all_positive(all);
    for (Curve& curve : chart.curves) curve.points = few;
  }
  const std::string when =
      config.step == 0 ? "before the first step" : fmt::format("after step {}", config.step);
  return charts_drawing(config, figure, std::move(charts), config.value + " by depth",
                        fmt::format("What the probe found {}. ", when) +
                            seeds_note(subject, config.band, few ? "bars" : "band"));
}

Drawing draw(const study::LineConfig& config, const PlannedFigure& figure, const Subject& subject) {
  Chart empty;
  empty.x_label = label_of_key(config.x);
  empty.y_label = label_of(config.value);
  for (const study::FigureLevel& level : figure.x) {
    figure.numeric_x ? empty.x_at.push_back(level.value) : empty.x_names.push_back(level.label);
  }
  const auto position = [&](std::size_t x) {
    return figure.numeric_x ? figure.x[x].value : static_cast<double>(x);
  };
  // By panel and series, the points of each seed.
  std::vector<std::vector<std::vector<std::vector<Point>>>> points(
      figure.panels.size(), std::vector<std::vector<std::vector<Point>>>(figure.series.size()));
  std::size_t lost = 0;
  for (const FigureEntry& e : figure.entries) {
    auto& runs = points[e.panel][e.series];
    const std::vector<double> values = evaluated(e, subject);
    runs.resize(std::max(runs.size(), values.size()));
    bool finite = false;
    for (std::size_t i = 0; i < values.size(); ++i) {
      runs[i].push_back({position(e.x), values[i]});
      finite = finite || std::isfinite(values[i]);
    }
    lost += finite ? 0 : 1;
  }
  std::vector<Chart> charts(figure.panels.size(), empty);
  Chart all = empty;
  for (std::size_t panel = 0; panel < charts.size(); ++panel) {
    for (std::size_t s = 0; s < figure.series.size(); ++s) {
      if (points[panel][s].empty()) continue;
      charts[panel].curves.push_back(
          mean_curve(figure.series[s], s, points[panel][s], 1, config.band));
      charts[panel].curves.back().points = true;
      all.curves.push_back(charts[panel].curves.back());
    }
  }
  const bool factors_span = figure.numeric_x && figure.x.front().value > 0 &&
                            figure.x.back().value >= kLogFactor * figure.x.front().value;
  for (Chart& chart : charts) {
    chart.log_x =
        figure.numeric_x && figure.x.front().value > 0 && config.log_x.value_or(factors_span);
    chart.log_y = all_positive(all) && config.log_y.value_or(spans(all, kLogFrom));
    if (config.value == "final" || config.value == "best" || config.value == "eval")
      chart.levels = subject.levels;
  }
  std::string note = seeds_note(subject, config.band, "bars");
  if (lost > 0)
    note += fmt::format("{} of {} points are not shown: not finite.", lost, figure.entries.size());
  return charts_drawing(config, figure, std::move(charts),
                        label_of(config.value) + " by " + label_of_key(config.x), note);
}

// --- Heat maps. ---
HeatCell cell_of(const FigureEntry& entry, const Subject& subject, std::optional<double> limit) {
  HeatCell cell;
  cell.present = true;
  const Subject::Arm& arm = subject.arms[entry.arm];
  const std::vector<double> values = evaluated(entry, subject);
  // A run that was stopped is a failure whatever is measured of it; one that is missing is none.
  const auto stopped = [&](std::size_t seed) {
    const study::Outcome outcome = arm.runs[values.size() == arm.runs.size() ? seed : 0].outcome;
    return outcome == study::Outcome::diverged || outcome == study::Outcome::failed_to_learn;
  };
  double good = 0, bad = 0;  // sums
  std::size_t known = 0;     // of what failed, yet is finite
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double x = values[i];
    shown.push_back(study::shown_number(x));
    if (std::isnan(x) && !stopped(i)) continue;
    ++cell.runs;
    const bool failed = stopped(i) || std::isinf(x) || (limit && x > *limit);
    if (failed) {
      ++cell.failed;
      known += std::isfinite(x) ? 1 : 0;
      bad += std::isfinite(x) ? x : 0;
    } else {
      good += x;
    }
  }
  const std::size_t survived = cell.runs - cell.failed;
  cell.value = survived > 0 ? good / static_cast<double>(survived)
               : known > 0  ? bad / static_cast<double>(known)
                            : study::kMissing;
  cell.hint = fmt::format("{}: {}", arm.name, fmt::join(shown, ", "));
  return cell;
}

Drawing draw(const study::HeatConfig& config, const PlannedFigure& figure, const Subject& subject) {
  const bool loss = config.value == "final" || config.value == "best" || config.value == "eval";
  std::optional<double> limit = figure.fails_above;
  if (!limit && loss && subject.guessing) limit = kFailed * *subject.guessing;
  HeatMap empty;
  empty.x_label = label_of_key(config.x);
  empty.y_label = label_of_key(config.y);
  for (const study::FigureLevel& level : figure.x) empty.x.push_back(level.label);
  for (const study::FigureLevel& level : figure.y) empty.y.push_back(level.label);
  empty.cells.resize(empty.x.size() * empty.y.size());
  std::vector<HeatMap> maps(figure.panels.size(), empty);
  bool failures = false;
  for (const FigureEntry& e : figure.entries) {
    HeatCell& cell = maps[e.panel].cells[e.y * empty.x.size() + e.x];
    cell = cell_of(e, subject, limit);
    failures = failures || cell.failed > 0;
  }
  std::string note;
  if (subject.arms[0].runs.size() > 1)
    note += "The mean of the seeds that did not fail; \u00d72: so many failed. ";
  note += fmt::format("Hatched, \u00d7: failed, {}not finite.",
                      limit ? fmt::format("above {} or ", study::shown_number(*limit)) : "");
  Drawing drawing;
  drawing.title = title_of(config, fmt::format("{} by {} and {}", label_of(config.value),
                                               label_of_key(config.y), label_of_key(config.x)));
  drawing.note = note_of(config, failures ? note : std::string());
  drawing.panels = figure.panels;
  drawing.scale = scale_of(maps, config.log_color ? *config.log_color : -1);
  drawing.value = label_of(config.value);
  for (std::size_t i = 0; i < maps.size(); ++i) {
    maps[i].title =
        figure.panels[i].empty() ? drawing.title : drawing.title + ": " + figure.panels[i];
  }
  drawing.maps = std::move(maps);
  return drawing;
}

}  // namespace

Chart curves_chart(const Subject& subject, const study::CurvesConfig& config) {
  Chart chart = empty_curves(config, subject);
  for (std::size_t arm = 0; arm < subject.arms.size(); ++arm) {
    chart.curves.push_back(curve_of(config, subject, arm, subject.arms[arm].name, arm));
  }
  return chart;
}

Drawing drawing_of(const study::PlannedFigure& figure, const Subject& subject) {
  return figure.config.visit([&](const auto& config) { return draw(config, figure, subject); });
}

}  // namespace norma::report
