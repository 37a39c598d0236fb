// Charts as SVG, drawn by gnuplot.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "apps/report/chart.h"

namespace norma::report {

// The colours of a picture, as SVG writes them: "#0072b2", or "var(--c0)" for a page whose style
// sheet gives them.
struct Palette {
  std::string ink, grid;
  std::vector<std::string> curves;
};
// For a page: --ink, --grid, --c0 to --c7.
[[nodiscard]] const Palette& page_palette();
// For a file of its own, on white.
[[nodiscard]] const Palette& paper_palette();

struct SvgOptions {
  int width = 820, height = 400;  // points
  bool key = false;               // the labels of the curves, below the field
  bool title = false;
  bool background = false;  // white; else transparent
  const Palette* palette = &page_palette();
};

// Throws Error if gnuplot is not installed, saying what to install.
[[nodiscard]] std::string draw_svg(const Chart& chart, const SvgOptions& options = {});

}  // namespace norma::report
