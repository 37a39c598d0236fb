// norma report RUN_OR_STUDY... [--out FILE] [--svg FILE]
#include "apps/report/report.h"

#include <fmt/format.h>

#include "apps/cli/verb.h"
#include "apps/study/study.h"
#include "core/file.h"

namespace norma::cli {
namespace {

struct ReportArguments {
  std::vector<std::string> folders;
  std::string out, svg;
};

// A study gets its own page; the runs share one, beside each other.
Status write_reports(const ReportArguments& arguments) {
  std::vector<std::string> runs;
  for (const std::string& folder : arguments.folders) {
    if (!study::is_study(folder)) {
      runs.push_back(folder);
      continue;
    }
    if (!arguments.out.empty()) {
      throw UsageError("--out is for runs; the report of a study stands in its folder");
    }
    fmt::print("{}\n", study::write_study_report(folder, arguments.svg));
  }
  if (runs.empty()) return kDone;
  const report::Subject subject = report::subject_of_runs(runs);
  const std::string path = !arguments.out.empty() ? arguments.out
                           : runs.size() == 1     ? runs[0] + "/report.html"
                                                  : std::string("report.html");
  write_file(path, report::html_report(subject));
  if (!arguments.svg.empty()) write_file(arguments.svg, report::paper_svg(subject));
  fmt::print("{}\n", path);
  return kDone;
}

}  // namespace

Action report_verb(Options& options) {
  const auto arguments = std::make_shared<ReportArguments>();
  options.add("RUN_OR_STUDY", arguments->folders, "Folders of runs or studies", {.required = true});
  options.add(
      "--out", arguments->out,
      "The page of the runs (default: report.html in the run's folder, or here for several)");
  options.add("--svg", arguments->svg, "Also the curves of the loss, a picture for documents");
  return [arguments] { return write_reports(*arguments); };
}

}  // namespace norma::cli
