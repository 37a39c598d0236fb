// A study's figures, drawn from what its runs have left.
#pragma once

#include <string>

#include "apps/report/report.h"
#include "apps/study/figure_plan.h"

namespace norma::report {

// The figure as HTML, with heading, key and panels; a sentence where there is nothing to draw.
// `small`: for half a column.
[[nodiscard]] std::string figure_html(const study::PlannedFigure& figure, const Subject& subject,
                                      bool small = false);

// The curves of a value of the training records (loss, lr, grad_norm), the evaluations (eval,
// accuracy) or the probes, of all arms.
[[nodiscard]] Chart curves_chart(const Subject& subject, const study::CurvesConfig& config);

}  // namespace norma::report
