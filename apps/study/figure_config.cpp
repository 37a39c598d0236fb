#include "apps/study/figure_config.h"

#include <algorithm>

namespace norma::study {

using namespace config;

Fields FigureOptions::figure_fields() {
  return {
      field("title", &FigureOptions::title, "Headline of the picture; empty: made of its value."),
      field("caption", &FigureOptions::caption, "What is to be seen."),
      field("arms", &FigureOptions::arms, "Which arms, a glob; several stand between |.",
            not_empty()),
      field("panels", &FigureOptions::panels,
            "A factor's key, or \"arms\": a panel for each of its values."),
  };
}

Fields CurvesConfig::fields() {
  return figure_fields() +
         Fields{
             field("value", &CurvesConfig::value,
                   "loss, lr, grad_norm, eval, accuracy, or the name of a probe's value.",
                   not_empty()),
             field("log_x", &CurvesConfig::log_x, "Steps on a log axis."),
             field("log_y", &CurvesConfig::log_y, "A log axis; null: for gradients and probes."),
             field("smooth", &CurvesConfig::smooth,
                   "Records that the curve is averaged over; null: of loss a sixtieth of the run, "
                   "of others "
                   "none.",
                   at_least(1)),
             field("band", &CurvesConfig::band, "What the band shows of the seeds."),
         };
}

Fields HeatConfig::fields() {
  return figure_fields() +
         Fields{
             field("x", &HeatConfig::x, "Dotted key of the columns.", not_empty(), required()),
             field("y", &HeatConfig::y, "Dotted key of the rows.", not_empty(), required()),
             field("value", &HeatConfig::value, "A measure, or an expression of `arm`.",
                   not_empty()),
             field("fails_above", &HeatConfig::fails_above,
                   "An expression; a cell above it is marked as failed. Empty: 0.97 of ln V where "
                   "the value is a loss."),
             field("log_color", &HeatConfig::log_color,
                   "Colours by the logarithm; null: where the cells span a factor of 30."),
         };
}

Fields ProfileConfig::fields() {
  return figure_fields() +
         Fields{
             field("value", &ProfileConfig::value, "Name of a probe's value, with * for the depth.",
                   not_empty(), required()),
             field("step", &ProfileConfig::step, "After which the probe looked.", at_least(0)),
             field("relative", &ProfileConfig::relative,
                   "Depth from 0 to 1, so that models of different depth lie on each other."),
             field("log_y", &ProfileConfig::log_y,
                   "A log axis; null: where the values span a factor of 30."),
             field("band", &ProfileConfig::band, "What the band shows of the seeds."),
         };
}

void ProfileConfig::check(Problems& problems, const std::string& path) const {
  if (std::count(value.begin(), value.end(), '*') != 1) {
    problems.add(join(path, "value"),
                 "expected one * where the depth stands, for instance stream.rms.blocks.*; got "
                 "\"{}\"",
                 value);
  }
}

Fields LineConfig::fields() {
  return figure_fields() +
         Fields{
             field("x", &LineConfig::x, "Dotted key along the axis.", not_empty(), required()),
             field("value", &LineConfig::value, "A measure, or an expression of `arm`.",
                   not_empty()),
             field("log_x", &LineConfig::log_x,
                   "A log axis; null: where the values span a factor of 8."),
             field("log_y", &LineConfig::log_y,
                   "A log axis; null: where the values span a factor of 30."),
             field("band", &LineConfig::band, "What the error bars show of the seeds."),
         };
}

}  // namespace norma::study
