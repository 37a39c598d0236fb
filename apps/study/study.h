// A study from its file to its report: plan, runs, verdicts, table, CSV, page.
#pragma once

#include <string>

#include "apps/study/ranks.h"
#include "apps/study/results.h"

namespace norma::study {

struct StudyOptions {
  std::string folder;                  // of the study; empty: studies/<name>
  std::string program;                 // that runs `train`; empty: this program
  std::int64_t jobs = 0;               // runs at a time; 0: as the study or the machine has it
  bool fresh = false;                  // forget what is done
  bool quiet = false;                  // no progress; warnings alone
  Ranks* ranks = nullptr;              // that take runs too
  bool no_share = false;               // train each run from its first step
  std::vector<std::string> sets = {};  // KEY=VALUE, as load_study() takes them
};

enum class StudyStatus { as_expected, unexpected, interrupted };

// Prints table, curves and claims to stdout, and leaves in the folder: study.json, ledger.jsonl,
// runs/, results.csv, report.html. Throws ConfigError before
// anything has started; Error if the report cannot be drawn (all else is there then).
[[nodiscard]] StudyStatus run_study(const std::string& file, const StudyOptions& options);

// True iff the folder is a study's.
[[nodiscard]] bool is_study(const std::string& folder);
// Writes the folder's report.html and results.csv anew from what its runs have left. With `svg`,
// the picture of the losses too, as a file of its own. Returns the path of the page.
std::string write_study_report(const std::string& folder, const std::string& svg = {});

}  // namespace norma::study
