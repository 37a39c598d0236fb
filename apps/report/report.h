// Reports: what was run, in curves, tables and verdicts, as one HTML file.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "apps/report/chart.h"
#include "apps/study/results.h"

namespace norma::report {

// What a report is about: arms of a study, or single runs beside each other.
struct Subject {
  struct Arm {
    std::string name;
    study::Json config;  // of its first run
    std::vector<study::RunRecord> runs;
    std::vector<std::string> run_names;                      // "seed 0"
    std::map<std::string, std::optional<double>> published;  // by measure
    std::size_t reference = 0;                               // the arm that it is compared with
  };
  std::string title, doc, source;
  std::vector<Arm> arms;
  std::string reference;  // what the arms are compared with; empty: nothing
  std::vector<Level> levels;
  std::vector<std::string> measures;
  std::vector<study::ClaimResult> claims;
  std::vector<study::PlannedFigure> figures;  // none: the losses
  std::optional<double> guessing;             // ln V, where the loss is a cross-entropy
};

[[nodiscard]] Subject subject_of(const study::StudyResults& results);
// Of runs' folders. Throws Error if one is no run.
[[nodiscard]] Subject subject_of_runs(const std::vector<std::string>& folders);

// How many runs there are, and how long those took of which it is known.
struct Work {
  std::int64_t runs = 0;
  double seconds = 0;
};
[[nodiscard]] Work work_of(const Subject& subject);

// Training loss over the steps, with the levels: the picture of the whole.
[[nodiscard]] Chart loss_chart(const Subject& subject);

// That picture as an SVG file of its own, on white, with title and key.
[[nodiscard]] std::string paper_svg(const Subject& subject);

// The page.
[[nodiscard]] std::string html_report(const Subject& subject);

}  // namespace norma::report
