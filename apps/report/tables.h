// The parts of a report that are words and numbers, as HTML.
#pragma once

#include <string>

#include "apps/report/report.h"

namespace norma::report {

// How many claims came out as expected, how many runs, how long.
[[nodiscard]] std::string summary_html(const Subject& subject);
// Each claim with its verdict and its numbers. Empty without claims, as are the others without
// anything to say.
[[nodiscard]] std::string claims_html(const Subject& subject);
// The measures: by arm and seed.
[[nodiscard]] std::string measures_html(const Subject& subject);
// The settings in which the arms differ, as they ran.
[[nodiscard]] std::string settings_html(const Subject& subject);
// Every setting of a run, those marked that differ from the defaults (configuration.cpp).
[[nodiscard]] std::string configuration_html(const study::Json& config);
// Runs that diverged, failed or are missing.
[[nodiscard]] std::string failures_html(const Subject& subject);

}  // namespace norma::report
