// Charts as SVG.
#pragma once

#include <string>

#include "apps/report/chart.h"
#include "apps/report/svg.h"

namespace norma::report {

// The chart as an SVG element; empty where there is nothing to draw. The labels of curves stand in
// the page's key (page.h) or, on paper, below the field.
[[nodiscard]] std::string draw_svg(const Chart& chart, const SvgOptions& options = {});

}  // namespace norma::report
