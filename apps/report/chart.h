// A picture as data: curves with bands, and levels. Drawn by gnuplot (gnuplot.h) or in letters
// (text_plot.h).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/study/run_record.h"

namespace norma::report {

struct Curve {
  std::string label;
  std::size_t color = 0;  // index into the palette
  std::vector<double> x, y;
  // The least and greatest over the seeds, as long as y; or empty.
  std::vector<double> low, high;
};

// A dashed horizontal line.
struct Level {
  std::string label;
  double y = 0;
};

struct Chart {
  std::string title;
  std::string x_label, y_label;
  bool log_y = false;
  bool from_zero = false;  // the axis of y begins at 0
  // Of a curve that explodes only the beginning is shown, so that the others stay visible: y ends
  // at three times the highest first value.
  bool cut_explosions = false;
  std::vector<Curve> curves;
  std::vector<Level> levels;

  // True iff there is something to draw.
  [[nodiscard]] bool empty() const;
};

// The range of y that shows the whole picture, with a margin.
struct Range {
  double low = 0;
  double high = 1;
};
[[nodiscard]] Range y_range(const Chart& chart);

// A number of each training record of a run.
using PointValue = double (*)(const study::TrainPoint&);

// The curve of an arm: at each step the mean over its runs, smoothed over `window` records (odd;
// 1: as they are), with the band from the lowest to the highest run. Where a run has ended, the
// others go on; what is not finite is left out.
[[nodiscard]] Curve mean_curve(std::string label, std::size_t color,
                               std::span<const study::RunRecord> runs, PointValue value,
                               std::size_t window);
// A window that takes the noise from a curve of n records and keeps its shape.
[[nodiscard]] std::size_t smoothing_window(std::size_t n);

}  // namespace norma::report
