// A picture as data: curves with bands, and levels. Drawn as SVG (svg_plot.h) or in letters
// (text_plot.h).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/study/figure_config.h"

namespace norma::report {

struct Curve {
  std::string label;
  std::size_t color = 0;  // index into the palette
  std::vector<double> x, y;
  // What the seeds span, as long as y; or empty.
  std::vector<double> low = {}, high = {};
  std::vector<double> raw = {};  // y before it was smoothed, drawn faintly; or empty
  bool points = false;  // its few values are marked, and what the seeds span is a bar at each
};

// A dashed horizontal line.
struct Level {
  std::string label;
  double y = 0;
};

struct Range {
  double low = 0;
  double high = 1;
};

struct Chart {
  std::string title;
  std::string x_label, y_label;
  bool log_x = false, log_y = false;
  bool from_zero = false;  // the axis of y begins at 0
  // Of a curve that explodes only the beginning is shown, so that the others stay visible: y ends
  // at three times the highest first value.
  bool cut_explosions = false;
  std::vector<double> x_at;  // where the marks of x stand; empty: at round numbers
  // Names of x = 0, 1, 2, ..., where x is no number.
  std::vector<std::string> x_names;
  std::vector<Curve> curves;
  std::vector<Level> levels;
  std::optional<Range> y_given;  // the range of y, where several charts share one

  // True iff there is something to draw.
  [[nodiscard]] bool empty() const;
};

// The range of y that shows the whole picture, with a margin.
[[nodiscard]] Range y_range(const Chart& chart);

struct Point {
  double x = 0, y = 0;
};

// The mean over the runs at each x, smoothed over `window` points (odd; 1: as they are), with what
// the runs span: from the lowest to the highest, or one sample deviation to each side. Where a run
// has ended, the others go on; what is not finite is left out.
[[nodiscard]] Curve mean_curve(std::string label, std::size_t color,
                               std::span<const std::vector<Point>> runs, std::size_t window,
                               study::BandKind band = study::BandKind::range);
// A window that takes the noise from a curve of n records and keeps its shape.
[[nodiscard]] std::size_t smoothing_window(std::size_t n);

// True iff all values of y, and of what the seeds span, are above 0.
[[nodiscard]] bool all_positive(const Chart& chart);
// True iff they are, and the largest is at least `factor` times the smallest.
[[nodiscard]] bool spans(const Chart& chart, double factor);

}  // namespace norma::report
