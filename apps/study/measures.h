// The measures of a run: numbers that tables show and claims speak of.
//
// To add one: a line in the table of measures.cpp. Claims may call it and a study may list it.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "apps/study/run_record.h"

namespace norma::study {

// Losses at the end of a run that `final` averages, and that `best` averages anywhere.
constexpr std::size_t kLossWindow = 10;

struct Measure {
  std::string_view name;
  std::string_view doc;
  bool truth;              // true iff it is a yes or no (1 or 0), not a number
  std::size_t parameters;  // numbers that it takes behind the arm
  double (*value)(const RunRecord& run, std::span<const double> parameters);

  // The value of a run: of one that failed or is missing always kMissing.
  [[nodiscard]] double of(const RunRecord& run, std::span<const double> numbers = {}) const;
};

[[nodiscard]] std::span<const Measure> measures();
// Null if there is none of that name.
[[nodiscard]] const Measure* find_measure(std::string_view name);
[[nodiscard]] std::vector<std::string_view> measure_names();

}  // namespace norma::study
