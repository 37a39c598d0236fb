// A study's figures, drawn from what its runs have left.
#pragma once

#include <string>

#include "apps/report/heat_map.h"
#include "apps/report/page.h"
#include "apps/report/report.h"
#include "apps/study/figure_plan.h"

namespace norma::report {

// A figure as data: charts, or heat maps, one a panel.
struct Drawing {
  std::string title, note;
  std::vector<std::string> panels;  // their titles; of one alone empty
  std::vector<Chart> charts;
  std::vector<HeatMap> maps;
  HeatScale scale;    // of the maps
  std::string value;  // what they show
  std::vector<Key> keys;
};
[[nodiscard]] Drawing drawing_of(const study::PlannedFigure& figure, const Subject& subject);

// The figure as HTML, with heading, key and panels; a sentence where there is nothing to draw.
// `small`: for half a column.
[[nodiscard]] std::string figure_html(const study::PlannedFigure& figure, const Subject& subject,
                                      bool small = false);
// Its first panels beside each other, without words: for an overview. Empty where there is nothing
// to draw.
[[nodiscard]] std::string thumbnail_svg(const study::PlannedFigure& figure, const Subject& subject);

// The curves of a value of the training records (loss, lr, grad_norm), the evaluations (eval,
// accuracy) or the probes, of all arms.
[[nodiscard]] Chart curves_chart(const Subject& subject, const study::CurvesConfig& config);

}  // namespace norma::report
