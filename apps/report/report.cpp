#include "apps/report/report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "apps/report/gnuplot.h"
#include "apps/report/page.h"
#include "apps/study/measures.h"
#include "apps/training/progress.h"
#include "apps/training/run_folder.h"
#include "core/error.h"

namespace norma::report {
namespace {

using study::Outcome;
using study::RunRecord;
using study::shown_number;
using study::TrainPoint;

const SvgOptions kLarge{.width = 880, .height = 430};
const SvgOptions kSmall{.width = 450, .height = 300};
constexpr const char* kDifferenceNote =
    " Differences are seed by seed: their mean, and half of its 95 % interval (Student's t).";
constexpr std::size_t kMostSettings = 12;  // columns of the table of settings

// Dotted path to text, for every value that is no object.
void flatten(const study::Json& json, const std::string& path,
             std::map<std::string, std::string>& into) {
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) flatten(value, config::join(path, key), into);
  } else {
    into[path] = json.is_string() ? json.get<std::string>() : json.dump();
  }
}

std::size_t window_of(const Subject& subject) {
  std::size_t longest = 0;
  for (const auto& arm : subject.arms) {
    for (const RunRecord& run : arm.runs) longest = std::max(longest, run.train.size());
  }
  return smoothing_window(longest);
}

Chart train_chart(const Subject& subject, PointValue value, std::size_t window) {
  Chart chart;
  chart.x_label = "optimizer step";
  for (std::size_t i = 0; i < subject.arms.size(); ++i) {
    chart.curves.push_back(
        mean_curve(subject.arms[i].name, i, subject.arms[i].runs, value, window));
  }
  return chart;
}

// Evaluations have few points: the mean of the runs that have one at the step.
Chart evaluation_chart(const Subject& subject, bool accuracy) {
  Chart chart;
  chart.x_label = "optimizer step";
  chart.y_label = accuracy ? "accuracy" : "loss (nats)";
  for (std::size_t i = 0; i < subject.arms.size(); ++i) {
    std::vector<RunRecord> as_training;
    for (const RunRecord& run : subject.arms[i].runs) {
      RunRecord record;
      for (const study::EvalPoint& e : run.evaluations) {
        record.train.push_back(
            {e.step, accuracy ? e.accuracy.value_or(study::kMissing) : e.loss, 0, 0});
      }
      as_training.push_back(std::move(record));
    }
    chart.curves.push_back(mean_curve(
        subject.arms[i].name, i, as_training, [](const TrainPoint& p) { return p.loss; }, 1));
  }
  return chart;
}

bool all_positive(const Chart& chart) {
  for (const Curve& curve : chart.curves) {
    for (const double y : curve.low.empty() ? curve.y : curve.low) {
      if (y <= 0) return false;
    }
  }
  return true;
}

std::size_t points(const Chart& chart) {
  std::size_t most = 0;
  for (const Curve& curve : chart.curves) most = std::max(most, curve.x.size());
  return most;
}

std::vector<Key> keys_of(const Subject& subject, bool with_final) {
  std::vector<Key> keys;
  for (std::size_t i = 0; i < subject.arms.size(); ++i) {
    std::string text = subject.arms[i].name;
    std::vector<double> finals;
    for (const RunRecord& run : subject.arms[i].runs)
      finals.push_back(study::find_measure("final")->of(run));
    if (with_final) text += " (ends at " + shown_number(study::spread(finals).mean) + ")";
    keys.push_back({i, text});
  }
  return keys;
}

std::string band_note(const Subject& subject, std::size_t window) {
  std::size_t runs = 0;
  for (const auto& arm : subject.arms) runs = std::max(runs, arm.runs.size());
  std::string note;
  if (runs > 1) note = fmt::format("Line: mean over {} seeds; band: lowest to highest seed.", runs);
  if (window > 1)
    note += fmt::format("{}Smoothed over {} records.", note.empty() ? "" : " ", window);
  return note;
}

std::string claims_html(const Subject& subject) {
  if (subject.claims.empty()) return "";
  std::string html = "<h2>Claims</h2>\n";
  for (const study::ClaimResult& result : subject.claims) {
    const study::ClaimConfig& claim = *result.claim;
    const char* kind = result.expected() ? "good" : result.held ? "bad" : "none";
    html += "<div class=\"claim\">\n";
    html +=
        fmt::format("<p class=\"sentence\"><span class=\"chip {}\">{}</span><span>{}</span></p>\n",
                    kind, result.verdict(), escaped(claim.text));
    html += "<dl>\n";
    const auto row = [&](const char* what, const std::string& text) {
      if (!text.empty()) html += fmt::format("<dt>{}</dt><dd>{}</dd>\n", what, text);
    };
    row("Claim", "<code>" + escaped(claim.expr) + "</code>");
    std::string measured;
    for (const study::Evidence& e : result.evidence) {
      measured += fmt::format("{}<code>{}</code>", measured.empty() ? "" : "<br>",
                              escaped(study::shown_evidence(e)));
    }
    row("Measured", measured);
    row("Published", escaped(claim.published));
    row("Source", escaped(claim.source));
    if (claim.expect == study::Verdict::fails) row("Expected to fail", escaped(claim.why));
    html += "</dl>\n";
    if (!result.expected())
      html += "<p class=\"soft\"><strong>This is not the expected verdict.</strong></p>\n";
    html += "</div>\n";
  }
  return html;
}

bool has_published(const Subject& subject, const std::string& measure) {
  return std::any_of(subject.arms.begin(), subject.arms.end(),
                     [&](const Subject::Arm& arm) { return arm.published.contains(measure); });
}

Cell published_cell(const Subject::Arm& arm, const std::string& measure) {
  const auto value = arm.published.find(measure);
  return {value == arm.published.end() ? "" : study::shown_published(value->second), true};
}

// One run an arm: a row an arm, a column a measure.
std::string single_runs_html(const Subject& subject) {
  std::vector<std::string> head = {""};
  for (const std::string& name : subject.measures) {
    head.push_back(name);
    if (has_published(subject, name)) head.emplace_back("published");
  }
  std::vector<std::vector<Cell>> rows;
  for (std::size_t i = 0; i < subject.arms.size(); ++i) {
    rows.push_back({{swatch(i) + escaped(subject.arms[i].name)}});
    for (const std::string& name : subject.measures) {
      rows.back().push_back(
          {study::shown_value(subject.arms[i].runs[0], *study::find_measure(name)), true});
      if (has_published(subject, name))
        rows.back().push_back(published_cell(subject.arms[i], name));
    }
  }
  std::string notes;
  for (const std::string& name : subject.measures) {
    notes +=
        fmt::format("{}{}: {}", notes.empty() ? "" : "; ", name, study::find_measure(name)->doc);
  }
  return fmt::format("<h2>Results</h2>\n{}<p class=\"soft\">{}.</p>\n", table(head, rows),
                     escaped(notes));
}

std::string measures_html(const Subject& subject) {
  const bool single = std::all_of(subject.arms.begin(), subject.arms.end(),
                                  [](const Subject::Arm& arm) { return arm.runs.size() == 1; });
  if (single) return single_runs_html(subject);
  std::string html;
  for (const std::string& name : subject.measures) {
    const study::Measure& measure = *study::find_measure(name);
    std::vector<std::string> head = {"", "mean", "std"};
    if (!subject.reference.empty()) head.push_back("minus " + subject.reference);
    head.insert(head.end(), subject.arms[0].run_names.begin(), subject.arms[0].run_names.end());
    if (has_published(subject, name)) head.emplace_back("published");
    std::vector<std::vector<Cell>> rows;
    for (std::size_t i = 0; i < subject.arms.size(); ++i) {
      const auto& arm = subject.arms[i];
      const auto values_of = [&](const Subject::Arm& a) {
        std::vector<double> values;
        for (const RunRecord& run : a.runs) values.push_back(measure.of(run));
        return values;
      };
      const std::vector<double> values = values_of(arm);
      const study::Spread s = study::spread(values);
      rows.push_back({{swatch(i) + escaped(arm.name)},
                      {"<strong>" + shown_number(s.mean) + "</strong>", true},
                      {study::shown_deviation(s), true}});
      if (!subject.reference.empty()) {
        const std::string difference = study::shown_difference(
            study::paired_difference(values, values_of(subject.arms[arm.reference])));
        rows.back().push_back({arm.reference == i ? "" : difference, true});
      }
      for (const RunRecord& run : arm.runs)
        rows.back().push_back({study::shown_value(run, measure), true});
      if (has_published(subject, name)) rows.back().push_back(published_cell(arm, name));
    }
    html += fmt::format("<h2>Results: {}</h2>\n<p class=\"soft\">The {}.{}</p>\n", escaped(name),
                        escaped(measure.doc), subject.reference.empty() ? "" : kDifferenceNote);
    html += table(head, rows);
  }
  return html;
}

// The settings in which the arms differ, as they ran.
std::string settings_html(const Subject& subject) {
  std::vector<std::map<std::string, std::string>> flat(subject.arms.size());
  std::set<std::string> paths;
  for (std::size_t i = 0; i < subject.arms.size(); ++i) {
    flatten(subject.arms[i].config, "", flat[i]);
    for (const auto& [path, value] : flat[i]) paths.insert(path);
  }
  std::vector<std::string> different;
  for (const std::string& path : paths) {
    if (path == "name" || (path == "seed" && !subject.claims.empty())) continue;
    const auto value = [&](std::size_t i) {
      return flat[i].contains(path) ? flat[i].at(path) : std::string();
    };
    for (std::size_t i = 1; i < flat.size(); ++i) {
      if (value(i) == value(0)) continue;
      different.push_back(path);
      break;
    }
  }
  if (different.empty()) return "";
  std::string html = "<h2>Settings that differ</h2>\n";
  if (different.size() > kMostSettings) {
    html +=
        fmt::format("<p class=\"soft\">The first {} of {}.</p>\n", kMostSettings, different.size());
    different.resize(kMostSettings);
  }
  std::vector<std::string> head = {""};
  head.insert(head.end(), different.begin(), different.end());
  std::vector<std::vector<Cell>> rows;
  for (std::size_t i = 0; i < flat.size(); ++i) {
    std::vector<Cell> row = {{swatch(i) + escaped(subject.arms[i].name)}};
    for (const std::string& path : different) {
      row.push_back(
          {flat[i].contains(path) ? "<code>" + escaped(flat[i].at(path)) + "</code>" : "", false});
    }
    rows.push_back(std::move(row));
  }
  return html + table(head, rows);
}

std::string failures_html(const Subject& subject) {
  std::string html;
  for (const auto& arm : subject.arms) {
    for (std::size_t k = 0; k < arm.runs.size(); ++k) {
      const RunRecord& run = arm.runs[k];
      if (run.outcome == Outcome::completed) continue;
      html += fmt::format("<p><span class=\"chip none\">{}</span> {}, {}{}{}</p>\n",
                          study::name_of(run.outcome), escaped(arm.name), escaped(arm.run_names[k]),
                          run.reason.empty() ? "" : ": ", escaped(run.reason));
    }
  }
  return html.empty() ? "" : "<h2>Runs that did not end as planned</h2>\n" + html;
}

std::string summary_html(const Subject& subject) {
  std::string html;
  if (!subject.claims.empty()) {
    const auto right = std::count_if(subject.claims.begin(), subject.claims.end(),
                                     [](const auto& c) { return c.expected(); });
    const auto all = static_cast<std::ptrdiff_t>(subject.claims.size());
    html +=
        fmt::format("<p><span class=\"chip {}\">{} of {} claims came out as expected</span></p>\n",
                    right == all ? "good" : "bad", right, all);
  }
  double seconds = 0;
  std::size_t runs = 0;
  for (const auto& arm : subject.arms) {
    for (const RunRecord& run : arm.runs) {
      if (std::isfinite(run.seconds)) seconds += run.seconds;
      ++runs;
    }
  }
  return html + fmt::format("<p class=\"soft\">{} run{}, {} of computing.</p>\n", runs,
                            runs == 1 ? "" : "s", duration_text(seconds));
}

}  // namespace

Subject subject_of(const study::StudyResults& results) {
  const study::Plan& plan = *results.plan;
  Subject subject;
  subject.title = plan.config.title.empty() ? plan.config.name : plan.config.title;
  subject.doc = plan.config.doc;
  subject.source = plan.config.source;
  subject.measures = plan.config.measures;
  subject.claims = results.claims;
  if (plan.seeds.size() > 1 && plan.arms.size() > 1) subject.reference = plan.reference;
  for (const study::Floor& floor : plan.floors)
    subject.levels.push_back({floor.label, floor.value});
  for (std::size_t arm = 0; arm < plan.arms.size(); ++arm) {
    Subject::Arm a{plan.arms[arm].name, plan.run(arm, 0).config, {}, {}, {}, 0};
    for (std::size_t seed = 0; seed < plan.seeds.size(); ++seed) {
      a.runs.push_back(results.run(arm, seed));
      a.run_names.push_back(fmt::format("seed {}", plan.seeds[seed]));
    }
    a.reference = plan.arms[arm].reference;
    for (const auto& [name, table] : plan.published) a.published[name] = table[arm];
    subject.arms.push_back(std::move(a));
  }
  return subject;
}

Subject subject_of_runs(const std::vector<std::string>& folders) {
  Subject subject;
  for (const std::string& folder : folders) {
    const RunFolder run = RunFolder::open(folder);
    Subject::Arm arm;
    arm.config = config::load_json(run.config_path());
    arm.name = folders.size() == 1 ? arm.config.value("name", folder) : folder;
    arm.runs.push_back(study::read_run(folder));
    arm.run_names.push_back(fmt::format("seed {}", arm.config.value("seed", 0)));
    subject.arms.push_back(std::move(arm));
  }
  for (const char* name : {"final", "best", "eval", "accuracy", "seconds"}) {
    const auto has = [&](const Subject::Arm& arm) {
      return !std::isnan(study::find_measure(name)->of(arm.runs[0]));
    };
    if (std::any_of(subject.arms.begin(), subject.arms.end(), has))
      subject.measures.emplace_back(name);
  }
  if (subject.measures.empty()) subject.measures.emplace_back("final");  // nothing is known yet
  subject.title =
      folders.size() == 1 ? subject.arms[0].name : fmt::format("{} runs", folders.size());
  const study::Json& data = subject.arms[0].config.at("data");
  if (data.contains("vocab") && data["vocab"].is_number()) {
    const double vocab = data["vocab"].get<double>();
    if (vocab > 1)
      subject.levels.push_back({fmt::format("guessing, ln {}", vocab), std::log(vocab)});
  }
  return subject;
}

Chart loss_chart(const Subject& subject) {
  Chart chart = train_chart(
      subject, [](const TrainPoint& p) { return p.loss; }, window_of(subject));
  chart.title = subject.title;
  chart.y_label = "training loss (nats)";
  chart.levels = subject.levels;
  chart.from_zero = true;
  chart.cut_explosions = true;
  return chart;
}

std::string paper_svg(const Subject& subject) {
  return draw_svg(loss_chart(subject), {.width = 880,
                                        .height = 480,
                                        .key = true,
                                        .title = true,
                                        .background = true,
                                        .palette = &paper_palette()});
}

std::string html_report(const Subject& subject) {
  const std::size_t window = window_of(subject);
  std::string body = fmt::format("<h1>{}</h1>\n", escaped(subject.title));
  if (!subject.doc.empty()) body += fmt::format("<p>{}</p>\n", escaped(subject.doc));
  if (!subject.source.empty())
    body += fmt::format("<p class=\"soft\">Source: {}</p>\n", escaped(subject.source));
  body += summary_html(subject);

  const bool several = subject.arms.size() > 1;
  body += figure("Training loss", band_note(subject, window), keys_of(subject, true),
                 draw_svg(loss_chart(subject), kLarge));
  body += claims_html(subject);
  body += measures_html(subject);

  body += "<h2>Along the run</h2>\n<div class=\"pair\">\n";
  const auto keys = several ? keys_of(subject, false) : std::vector<Key>{};
  Chart rate = train_chart(
      subject, [](const TrainPoint& p) { return p.lr; }, 1);
  rate.y_label = "learning rate";
  rate.from_zero = true;
  body += figure("Learning rate", several ? "Curves that agree lie on each other." : "", keys,
                 draw_svg(rate, kSmall));
  Chart gradient = train_chart(
      subject, [](const TrainPoint& p) { return p.grad_norm; }, 1);
  gradient.y_label = "norm of the gradient";
  gradient.log_y = all_positive(gradient);
  body += figure("Gradient norm", "Of all parameters together, before clipping.", keys,
                 draw_svg(gradient, kSmall));
  for (const bool accuracy : {false, true}) {
    const Chart chart = evaluation_chart(subject, accuracy);
    if (points(chart) < 2) continue;
    body += figure(accuracy ? "Accuracy" : "Evaluation loss", "On data that is not trained on.",
                   keys, draw_svg(chart, kSmall));
  }
  body += "</div>\n";
  body += settings_html(subject);
  body += failures_html(subject);
  body += fmt::format("<footer class=\"soft\">Written by norma {}.</footer>\n", NORMA_VERSION);
  return page(subject.title, body);
}

}  // namespace norma::report
