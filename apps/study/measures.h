// The measures of a run: numbers that tables show and claims speak of.
//
// To add one: a line in the table of measures.cpp. Claims may call it and a study may list it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/study/run_record.h"

namespace norma::study {

// Losses at the end of a run that `final` averages, and that `best` averages anywhere.
constexpr std::size_t kLossWindow = 10;

// What a call gives a measure besides the arm: probe("pre", "grad.whole", 0) a text and a number.
struct MeasureArguments {
  std::string_view text = {};
  std::span<const double> numbers = {};
};

struct Measure {
  std::string_view name;
  std::string_view doc;
  bool truth = false;       // true iff it is a yes or no (1 or 0), not a number
  bool text = false;        // true iff it takes a text behind the arm
  std::size_t numbers = 0;  // numbers that it takes behind that
  double (*value)(const RunRecord& run, const MeasureArguments& arguments) = nullptr;

  // The value of a run: of one that failed or is missing always kMissing.
  [[nodiscard]] double of(const RunRecord& run, const MeasureArguments& arguments = {}) const;
};

[[nodiscard]] std::span<const Measure> measures();
// Null if there is none of that name.
[[nodiscard]] const Measure* find_measure(std::string_view name);
[[nodiscard]] std::vector<std::string_view> measure_names();

}  // namespace norma::study
