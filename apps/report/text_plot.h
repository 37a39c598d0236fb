// A chart in letters, for the terminal.
#pragma once

#include <string>

#include "apps/report/chart.h"

namespace norma::report {

struct TextPlotOptions {
  std::size_t width = 64;   // letters of the field
  std::size_t height = 17;  // lines of the field
  bool colors = false;      // as a terminal shows them
};

// Each curve has a sign of its own, and its label at the right, at the height where it ends; levels
// are dashed lines.
[[nodiscard]] std::string text_plot(const Chart& chart, const TextPlotOptions& options = {});

}  // namespace norma::report
