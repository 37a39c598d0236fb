// A picture of a study, laid out before anything has run: which arm stands where.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/study/expression.h"
#include "apps/study/figure_config.h"

namespace norma::study {

struct Plan;

// A value along an axis, or of a panel.
struct FigureLevel {
  std::string label;
  double value = 0;  // where all of an axis are numbers
};

struct FigureEntry {
  std::size_t arm = 0;     // index into Plan::arms
  std::size_t panel = 0;   // into PlannedFigure::panels
  std::size_t series = 0;  // into PlannedFigure::series: a curve; 0 in a heat map
  std::size_t x = 0, y = 0;
  std::optional<Expression> value;  // of heat and line: a number, or one a seed
};

struct PlannedFigure {
  FigureConfig config;
  std::vector<std::string> panels;  // their titles; one without a title where there are none
  std::vector<std::string> series;  // labels; the same in every panel
  std::vector<FigureLevel> x, y;    // of heat and line; x of numbers ascends
  bool numeric_x = false;
  std::vector<FigureEntry> entries;
  std::optional<double> fails_above;  // of heat, where it is given
};

// Lays the study's figures out, or those that fit it where it asks for none: the losses; a heat map
// of two numeric factors that have three values or more each; a line over one. Problems, with the
// place in the file, go to `problems`.
[[nodiscard]] std::vector<PlannedFigure> plan_figures(const Plan& plan, const Scope& scope,
                                                      std::vector<config::Problem>& problems);

}  // namespace norma::study
