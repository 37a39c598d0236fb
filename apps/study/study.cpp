#include "apps/study/study.h"

#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/report/index.h"
#include "apps/report/report.h"
#include "apps/report/text_plot.h"
#include "apps/study/runner.h"
#include "core/file.h"

namespace norma::study {
namespace fs = std::filesystem;
namespace {

std::string study_file(const std::string& folder) { return folder + "/study.json"; }

void print_results(const StudyResults& results, const report::Subject& subject) {
  const StudyConfig& config = results.plan->config;
  fmt::print("{}\n\n{}\n", config.title.empty() ? config.name : config.title, table_text(results));
  report::Chart chart = report::loss_chart(subject);
  for (std::size_t arm = 0; arm < chart.curves.size(); ++arm) {
    chart.curves[arm].label +=
        " " + shown_number(spread(results.values(column_of("final"), arm)).mean);
  }
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  const std::string plot = report::text_plot(chart, {.colors = terminal});
  if (!plot.empty()) fmt::print("{}\n", plot);
  for (std::size_t i = 0; i < results.runs.size(); ++i) {
    const RunRecord& run = results.runs[i];
    if (run.outcome == Outcome::completed) continue;
    fmt::print("{} {}: {}\n", results.plan->runs[i].id, name_of(run.outcome), run.reason);
  }
  fmt::print("{}", claims_text(results));
}

// Returns the path of the page.
std::string write_report(const std::string& folder, const StudyResults& results,
                         const report::Subject& subject) {
  write_file(folder + "/results.csv", results_csv(results));
  write_file(folder + "/summary.csv", summary_csv(results));
  const std::string path = folder + "/report.html";
  write_file(path, report::html_report(subject));
  report::write_overview(folder, report::overview_of(subject));
  return path;
}

}  // namespace

StudyStatus run_study(const std::string& file, const StudyOptions& options) {
  const StudyConfig config = load_study(file, options.sets);
  const Plan plan = make_plan(config);
  const std::string folder =
      options.folder.empty() ? "studies/" + slug(config.name) : options.folder;
  if (options.fresh) {
    fs::remove(folder + "/ledger.jsonl");
    fs::remove_all(folder + "/runs");
    fs::remove_all(prefixes_folder(folder));
  }
  fs::create_directories(folder);
  write_file(study_file(folder), config::to_json(config).dump(2) + "\n");
  if (!run_plan(plan, {folder, options.program, options.jobs, options.quiet, !options.no_share,
                       options.ranks}))
    return StudyStatus::interrupted;

  const StudyResults results = judge(plan, read_results(plan, folder));
  const report::Subject subject = report::subject_of(results);
  print_results(results, subject);
  std::fflush(stdout);
  fmt::print("\n{}\n", write_report(folder, results, subject));
  return results.as_expected() ? StudyStatus::as_expected : StudyStatus::unexpected;
}

bool is_study(const std::string& folder) { return fs::exists(study_file(folder)); }

std::string write_study_report(const std::string& folder, const std::string& svg) {
  const Plan plan = make_plan(load_study(study_file(folder)));
  const StudyResults results = judge(plan, read_results(plan, folder));
  const report::Subject subject = report::subject_of(results);
  if (!svg.empty()) write_file(svg, report::paper_svg(subject));
  return write_report(folder, results, subject);
}

}  // namespace norma::study
