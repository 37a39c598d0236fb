// A heat map: a value over two factors, as numbers in coloured cells.
#pragma once

#include <string>
#include <vector>

#include "apps/report/svg.h"

namespace norma::report {

struct HeatCell {
  bool present = false;  // false: no run stands here
  double value = 0;      // not finite: failed, or not known
  // Runs of the cell that failed, and all that have a result.
  std::size_t failed = 0, runs = 0;
  std::string hint;  // shown when one points at it
};

struct HeatMap {
  std::string title;
  std::string x_label, y_label;
  std::vector<std::string> x, y;  // names of columns and rows; the first row stands at the top
  std::vector<HeatCell> cells;    // row by row

  // True iff no run stands in it.
  [[nodiscard]] bool empty() const;
};

// The colours of values: from the least to the greatest, dark to light; by the logarithm where the
// scale says so. One scale serves several panels.
struct HeatScale {
  double low = 0, high = 1;
  bool log = false;

  // 0 to 1.
  [[nodiscard]] double place(double value) const;
};
// Of all cells that have not failed as a whole. Logarithmic where `log` is 1, or -1 and the values
// are positive and span a factor of 30.
[[nodiscard]] HeatScale scale_of(const std::vector<HeatMap>& maps, int log);

// Failed cells are hatched and marked with a cross; a number where it is known. Empty if the map
// is.
[[nodiscard]] std::string draw_heat_map(const HeatMap& map, const HeatScale& scale,
                                        const SvgOptions& options);
// The key: what the colours and the hatching mean.
[[nodiscard]] std::string draw_heat_key(const HeatScale& scale, std::string_view label);

}  // namespace norma::report
