// The page of several studies: what each one says, and every claim with its verdict.
#pragma once

#include <string>
#include <vector>

#include "apps/report/report.h"
#include "core/config/config.h"

namespace norma::report {

// What the index tells of a claim.
struct ClaimOverview {
  std::string text, verdict;
  bool expected = false;  // the verdict is the one that the study expects
  std::vector<std::string> measured;
  std::string published;

  [[nodiscard]] static config::Fields fields();
};

// What it tells of a study: kept beside the study's page, so that the index of many studies need
// not read all of their runs.
struct Overview {
  std::string title, doc;
  std::vector<ClaimOverview> claims;
  std::int64_t runs = 0;
  double seconds = 0;
  std::string thumbnail;  // SVG

  [[nodiscard]] static config::Fields fields();
};

[[nodiscard]] Overview overview_of(const Subject& subject);
// overview.json in a study's folder.
void write_overview(const std::string& folder, const Overview& overview);
// Nothing if the study has not left one.
[[nodiscard]] std::optional<Overview> read_overview(const std::string& folder);

// Writes `out`/index.html: the studies of these names first, in this order, then the others that
// have left an overview in folders of `out`. Returns its path.
std::string write_index(const std::string& out, const std::vector<std::string>& names);
// A line a claim of these studies, for the terminal: verdict, study, sentence; what is not as
// expected is said.
[[nodiscard]] std::string claim_lines(const std::string& out,
                                      const std::vector<std::string>& names);

}  // namespace norma::report
