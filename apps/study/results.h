// The results of a study: verdicts, table, CSV.
#pragma once

#include <string>
#include <vector>

#include "apps/study/column.h"
#include "apps/study/plan.h"
#include "apps/study/run_record.h"
#include "apps/study/statistics.h"

namespace norma::study {

struct ClaimResult {
  const ClaimConfig* claim = nullptr;
  // Nothing where a run that it rests on has no result.
  std::optional<bool> held;
  std::vector<Evidence> evidence;

  // True iff the verdict is the one that the study expects.
  [[nodiscard]] bool expected() const {
    return held.has_value() && *held == (claim->expect == Verdict::holds);
  }
  // "held", "did not hold", "no result".
  [[nodiscard]] std::string verdict() const;
};

struct StudyResults {
  const Plan* plan = nullptr;
  std::vector<RunRecord> runs;  // as plan->runs
  std::vector<ClaimResult> claims;

  [[nodiscard]] const RunRecord& run(std::size_t arm, std::size_t seed) const {
    return runs[seed * plan->arms.size() + arm];
  }
  // A column of the tables, for an arm: a value a seed.
  [[nodiscard]] std::vector<double> values(const Column& column, std::size_t arm) const;
  // The published table of a column's name, or null.
  [[nodiscard]] const PublishedTable* published(std::string_view column) const;
  // True iff every claim's verdict is the expected one, and no run failed.
  [[nodiscard]] bool as_expected() const;
};

// Judges every claim. A claim with a value a seed holds iff it does on every seed. `plan` must
// outlive the results.
[[nodiscard]] StudyResults judge(const Plan& plan, std::vector<RunRecord> runs);

// A number as tables show it: 4 digits; "-" where it is missing.
[[nodiscard]] std::string shown_number(double x);
// A run's value as tables show it: how the run ended instead, where that is no completion; both,
// where it failed to learn.
[[nodiscard]] std::string shown_value(const RunRecord& run, const Column& column);
// The deviation, with as many places as its mean has.
[[nodiscard]] std::string shown_deviation(const Spread& spread);
// "-0.123 ± 0.045"; without an interval "-0.123"; "-" where it is missing.
[[nodiscard]] std::string shown_difference(const Difference& difference);

// A published value as tables show it; "" where there is none.
[[nodiscard]] std::string shown_published(const std::optional<double>& value);

// `final("pre") = 0.240, 0.250`; over several arms how many values there are and which are the
// least and the greatest, or on how many a comparison holds, and on which it does not.
[[nodiscard]] std::string shown_evidence(const Evidence& evidence);

// The tables, one a measure: mean, deviation, with several seeds the paired difference to the
// reference, each seed, the published value.
[[nodiscard]] std::string table_text(const StudyResults& results);
// A paragraph a claim: verdict, sentence, numbers, the published ones.
[[nodiscard]] std::string claims_text(const StudyResults& results);
// A line an arm and measure: number of seeds, mean, deviation, paired difference to the reference
// with its 95 % interval, published value.
[[nodiscard]] std::string summary_csv(const StudyResults& results);
// A line a run: arm, seed, status, steps, the measures, the published values
// ("published.final"), the settings that differ, folder.
[[nodiscard]] std::string results_csv(const StudyResults& results);

}  // namespace norma::study
