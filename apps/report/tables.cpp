#include "apps/report/tables.h"

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "apps/report/page.h"
#include "apps/study/column.h"
#include "apps/training/progress.h"

namespace norma::report {
namespace {

using study::Column;
using study::Outcome;
using study::RunRecord;
using study::shown_number;

constexpr const char* kDifferenceNote =
    " Differences are seed by seed: their mean, and half of its 95 % interval (Student's t).";
constexpr std::size_t kMostSettings = 12;  // columns of the table of settings

using Values = std::vector<const study::Json*>;  // of each arm; null where it has none

// True iff the values are lists of objects (layers), equally long, so that places correspond.
bool are_like_lists(const Values& values) {
  return std::all_of(values.begin(), values.end(), [&](const study::Json* value) {
    return value && value->is_array() && value->size() == values[0]->size() &&
           std::all_of(value->begin(), value->end(), [](const auto& v) { return v.is_object(); });
  });
}

// Dotted path to the text of each arm, for every value that is no object and no list of objects.
void flatten(const Values& values, const std::string& path,
             std::map<std::string, std::vector<std::string>>& into) {
  const bool lists = are_like_lists(values);
  std::map<std::string, Values> parts;
  const auto add = [&](const std::string& key, std::size_t arm, const study::Json& value) {
    Values& part = parts[key];
    part.resize(values.size());
    part[arm] = &value;
  };
  for (std::size_t arm = 0; arm < values.size(); ++arm) {
    if (!values[arm]) continue;
    const study::Json& value = *values[arm];
    if (value.is_object()) {
      for (const auto& [key, inner] : value.items()) add(key, arm, inner);
    } else if (lists) {
      for (std::size_t i = 0; i < value.size(); ++i) add(std::to_string(i), arm, value[i]);
    } else {
      std::vector<std::string>& texts = into[path];
      texts.resize(values.size());
      texts[arm] = value.is_string() ? value.get<std::string>() : value.dump();
    }
  }
  for (const auto& [key, part] : parts) flatten(part, config::join(path, key), into);
}

bool has_published(const Subject& subject, const Column& column) {
  return std::any_of(subject.arms.begin(), subject.arms.end(),
                     [&](const Subject::Arm& arm) { return arm.published.contains(column.name); });
}

Cell published_cell(const Subject::Arm& arm, const Column& column) {
  const auto value = arm.published.find(column.name);
  return {value == arm.published.end() ? "" : study::shown_published(value->second), true};
}

// One run an arm: a row an arm, a column a measure.
std::string single_runs_html(const Subject& subject, const std::vector<Column>& columns) {
  std::vector<std::string> head = {""};
  std::string notes;
  for (const Column& column : columns) {
    head.push_back(column.name);
    if (has_published(subject, column)) head.emplace_back("published");
    notes += fmt::format("{}{}: {}", notes.empty() ? "" : "; ", column.name, column.doc);
  }
  std::vector<std::vector<Cell>> rows;
  for (std::size_t i = 0; i < subject.arms.size(); ++i) {
    rows.push_back({{swatch(i) + escaped(subject.arms[i].name)}});
    for (const Column& column : columns) {
      rows.back().push_back({study::shown_value(subject.arms[i].runs[0], column), true});
      if (has_published(subject, column))
        rows.back().push_back(published_cell(subject.arms[i], column));
    }
  }
  return fmt::format("<h2>Results</h2>\n{}<p class=\"soft\">{}.</p>\n", table(head, rows),
                     escaped(notes));
}

}  // namespace

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

std::string measures_html(const Subject& subject) {
  const bool single = std::all_of(subject.arms.begin(), subject.arms.end(),
                                  [](const Subject::Arm& arm) { return arm.runs.size() == 1; });
  const std::vector<Column> columns = study::columns_of(subject.measures);
  if (single) return single_runs_html(subject, columns);
  std::string html;
  for (const Column& column : columns) {
    std::vector<std::string> head = {"", "mean", "std"};
    if (!subject.reference.empty()) head.push_back("minus " + subject.reference);
    head.insert(head.end(), subject.arms[0].run_names.begin(), subject.arms[0].run_names.end());
    if (has_published(subject, column)) head.emplace_back("published");
    std::vector<std::vector<Cell>> rows;
    for (std::size_t i = 0; i < subject.arms.size(); ++i) {
      const auto& arm = subject.arms[i];
      const auto values_of = [&](const Subject::Arm& a) {
        std::vector<double> values;
        for (const RunRecord& run : a.runs) values.push_back(column.of(run));
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
        rows.back().push_back({study::shown_value(run, column), true});
      if (has_published(subject, column)) rows.back().push_back(published_cell(arm, column));
    }
    html +=
        fmt::format("<h2>Results: {}</h2>\n<p class=\"soft\">The {}.{}</p>\n", escaped(column.name),
                    escaped(column.doc), subject.reference.empty() ? "" : kDifferenceNote);
    html += table(head, rows);
  }
  return html;
}

// The settings in which the arms differ, as they ran.
std::string settings_html(const Subject& subject) {
  Values configs;
  for (const Subject::Arm& arm : subject.arms) configs.push_back(&arm.config);
  std::map<std::string, std::vector<std::string>> flat;
  flatten(configs, "", flat);
  std::vector<std::string> different;
  for (const auto& [path, texts] : flat) {
    if (path == "name" || (path == "seed" && !subject.claims.empty())) continue;
    if (std::adjacent_find(texts.begin(), texts.end(), std::not_equal_to<>()) != texts.end()) {
      different.push_back(path);
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
  for (std::size_t i = 0; i < configs.size(); ++i) {
    std::vector<Cell> row = {{swatch(i) + escaped(subject.arms[i].name)}};
    for (const std::string& path : different) {
      const std::string& text = flat.at(path)[i];
      row.push_back({text.empty() ? "" : "<code>" + escaped(text) + "</code>", false});
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
  const auto [runs, seconds] = work_of(subject);
  return html + fmt::format("<p class=\"soft\">{} run{}, {} of computing.</p>\n", runs,
                            runs == 1 ? "" : "s", duration_text(seconds));
}

}  // namespace norma::report
