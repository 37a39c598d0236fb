#include "apps/report/report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/report/axis.h"
#include "apps/report/figures.h"
#include "apps/report/floors.h"
#include "apps/report/page.h"
#include "apps/report/svg_plot.h"
#include "apps/report/tables.h"
#include "apps/study/measures.h"
#include "apps/training/run_folder.h"
#include "core/error.h"

namespace norma::report {
namespace {

constexpr std::size_t kCrowded = 12;  // arms, from which on curves of all in one field say nothing

// A picture of one value along the run, all arms in one field.
study::PlannedFigure usual_curves(const Subject& subject, const char* title, const char* value,
                                  const char* caption = "") {
  study::CurvesConfig config;
  config.title = title;
  config.value = value;
  config.caption = caption;
  study::PlannedFigure figure;
  figure.config = config;
  figure.panels = {""};
  for (std::size_t arm = 0; arm < subject.arms.size(); ++arm) {
    figure.series.push_back(subject.arms.size() > 1 ? subject.arms[arm].name : "");
    figure.entries.push_back({arm, 0, arm, 0, 0, {}});
  }
  return figure;
}

// Values at two steps or more.
bool has_curves(const Subject& subject, const char* value) {
  study::CurvesConfig config;
  config.value = value;
  const Chart chart = curves_chart(subject, config);
  return std::any_of(chart.curves.begin(), chart.curves.end(),
                     [](const Curve& c) { return c.x.size() > 1; });
}

std::string along_the_run_html(const Subject& subject) {
  static constexpr struct {
    const char *title, *value, *caption;
  } kPictures[] = {{"Learning rate", "lr", ""},
                   {"Gradient norm", "grad_norm", "Of all parameters together, before clipping."},
                   {"Evaluation loss", "eval", "On data that is not trained on."},
                   {"Accuracy", "accuracy", "On data that is not trained on."}};
  std::string html;
  for (const auto& [title, value, caption] : kPictures) {
    if (has_curves(subject, value))
      html += figure_html(usual_curves(subject, title, value, caption), subject, true);
  }
  if (html.empty()) return "";
  return "<h2>Along the run</h2>\n<div class=\"pair\">\n" + html + "</div>\n";
}

// Of a single run: what its probes found over time, in the first, the middle and the last block.
std::string probes_html(const Subject& subject) {
  static constexpr struct {
    const char *title, *before, *after;
  } kPictures[] = {{"RMS of the residual stream", "stream.rms.blocks.", ""},
                   {"Gradient norm by block", "grad.blocks.", ""},
                   {"Largest attention logit", "logit.blocks.", ".attention"},
                   {"Share of the attention branch", "branch.share.blocks.", ".attention"},
                   {"Share of the feed-forward branch", "branch.share.blocks.", ".ffn"}};
  const auto curve = [&](const std::string& value) {
    study::CurvesConfig config;
    config.value = value;
    return curves_chart(subject, config).curves[0];
  };
  std::string html;
  const auto add = [&](Chart chart, const std::vector<Key>& keys) {
    if (chart.curves.empty()) return;
    chart.x_label = "optimizer step";
    chart.y_label = chart.title;
    chart.log_y = spans(chart, kLogFrom);
    html += html_figure(chart.title, "", key_list(keys), {{"", draw_svg(chart, small_svg())}});
  };
  for (const auto& [title, before, after] : kPictures) {
    Chart chart;
    chart.title = title;
    std::vector<Key> keys;
    for (const char* block : {"first", "middle", "last"}) {
      Curve c = curve(fmt::format("{}{}{}", before, block, after));
      if (c.x.size() < 2) continue;
      c.label = fmt::format("{} block", block);
      c.color = keys.size();
      keys.push_back({c.color, c.label});
      chart.curves.push_back(std::move(c));
    }
    add(std::move(chart), keys);
  }
  Chart sharpness;
  sharpness.title = "Sharpness";
  if (Curve c = curve("sharpness"); c.x.size() > 1) sharpness.curves.push_back(std::move(c));
  add(std::move(sharpness), {});
  return html.empty() ? "" : "<h2>Probes</h2>\n<div class=\"pair\">\n" + html + "</div>\n";
}

// The levels of the arms' data, where it is the same for all.
void add_floors(Subject& subject) {
  for (const Subject::Arm& arm : subject.arms) {
    if (arm.config.value("data", study::Json()) !=
        subject.arms[0].config.value("data", study::Json()))
      return;
  }
  const DataFloors floors = floors_of(subject.arms[0].config);
  subject.guessing = floors.guessing;
  if (subject.levels.empty()) subject.levels = floors.levels;
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
  subject.figures = plan.figures;
  add_floors(subject);
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
  add_floors(subject);
  return subject;
}

Work work_of(const Subject& subject) {
  Work work;
  for (const Subject::Arm& arm : subject.arms) {
    for (const study::RunRecord& run : arm.runs) {
      if (std::isfinite(run.seconds)) work.seconds += run.seconds;
      ++work.runs;
    }
  }
  return work;
}

Chart loss_chart(const Subject& subject) {
  Chart chart = curves_chart(subject, {});
  chart.title = subject.title;
  return chart;
}

std::string paper_svg(const Subject& subject) {
  SvgOptions options;
  options.width = 880;
  options.height = 480;
  options.paper = true;
  return draw_svg(loss_chart(subject), options);
}

std::string html_report(const Subject& subject) {
  std::string body = fmt::format("<h1>{}</h1>\n", escaped(subject.title));
  if (!subject.doc.empty()) body += fmt::format("<p>{}</p>\n", escaped(subject.doc));
  if (!subject.source.empty())
    body += fmt::format("<p class=\"soft\">Source: {}</p>\n", escaped(subject.source));
  body += summary_html(subject);

  std::vector<study::PlannedFigure> figures = subject.figures;
  if (figures.empty()) figures.push_back(usual_curves(subject, "Training loss", "loss"));
  body += figure_html(figures[0], subject);
  body += claims_html(subject);
  for (std::size_t i = 1; i < figures.size(); ++i) {
    if (i == 1) body += "<h2>Further pictures</h2>\n";
    body += figure_html(figures[i], subject);
  }
  body += measures_html(subject);
  if (subject.arms.size() <= kCrowded) body += along_the_run_html(subject);
  if (subject.arms.size() == 1 && subject.arms[0].runs.size() == 1) {
    body += probes_html(subject);
    body += configuration_html(subject.arms[0].config);
  }
  body += settings_html(subject);
  body += failures_html(subject);
  body += fmt::format("<footer class=\"soft\">Written by norma {}.</footer>\n", NORMA_VERSION);
  return page(subject.title, body);
}

}  // namespace norma::report
