#include "apps/report/chart.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "apps/study/statistics.h"

namespace norma::report {
namespace {

constexpr std::size_t kWindowsPerCurve = 60;  // smoothing windows that fit beside each other
constexpr double kExplosion = 3;              // times the highest first value
constexpr double kMargin = 0.06;              // of the range, free above the curves
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Mean of the values around each place.
std::vector<double> smoothed(const std::vector<double>& y, std::size_t window) {
  const std::size_t reach = window / 2;
  std::vector<double> result(y.size());
  for (std::size_t i = 0; i < y.size(); ++i) {
    // As far to the left as to the right, so that the ends are not drawn towards the middle.
    const std::size_t r = std::min({reach, i, y.size() - 1 - i});
    double sum = 0;
    for (std::size_t k = i - r; k <= i + r; ++k) sum += y[k];
    result[i] = sum / static_cast<double>(2 * r + 1);
  }
  return result;
}

// The least and greatest finite values of y, and of what the seeds span; of positive ones alone
// where asked.
Range extent(const Chart& chart, bool positive) {
  Range range{kInfinity, -kInfinity};
  for (const Curve& curve : chart.curves) {
    for (const std::vector<double>* values : {&curve.y, &curve.low, &curve.high}) {
      for (const double y : *values) {
        if (!std::isfinite(y) || (positive && y <= 0)) continue;
        range.low = std::min(range.low, y);
        range.high = std::max(range.high, y);
      }
    }
  }
  return range;
}

}  // namespace

bool Chart::empty() const {
  return std::all_of(curves.begin(), curves.end(), [](const Curve& c) { return c.x.empty(); });
}

Range y_range(const Chart& chart) {
  if (chart.y_given) return *chart.y_given;
  auto [low, high] = extent(chart, chart.log_y);
  double first = -kInfinity;
  for (const Curve& curve : chart.curves) {
    if (!curve.y.empty()) first = std::max(first, curve.y.front());
  }
  for (const Level& level : chart.levels) {
    if (chart.log_y && level.y <= 0) continue;
    low = std::min(low, level.y);
    high = std::max(high, level.y);
    first = std::max(first, level.y);
  }
  if (!(low <= high)) return chart.log_y ? Range{0.1, 1} : Range{};
  if (chart.log_y) {
    const double factor = std::max(1.2, std::pow(high / low, kMargin));
    return {low / factor, high * factor};
  }
  if (chart.cut_explosions && first > 0 && high > kExplosion * first) high = kExplosion * first;
  if (chart.from_zero && low > 0) low = 0;
  const double margin = kMargin * (high > low ? high - low : std::max(1.0, std::abs(high)));
  const bool at_zero = low >= 0 && (low < margin || (chart.from_zero && low == 0));
  return {at_zero ? 0 : low - margin, high + margin};
}

std::size_t smoothing_window(std::size_t n) {
  const std::size_t window = n / kWindowsPerCurve;
  return window <= 1 ? 1 : window | 1;
}

Curve mean_curve(std::string label, std::size_t color, std::span<const std::vector<Point>> runs,
                 std::size_t window, study::BandKind band) {
  std::map<double, std::vector<double>> at, raw_at;  // the runs' values by x
  for (const std::vector<Point>& run : runs) {
    std::vector<double> x, y;
    for (const Point& point : run) {
      if (!std::isfinite(point.y)) continue;
      x.push_back(point.x);
      y.push_back(point.y);
    }
    const std::vector<double> smooth = window > 1 ? smoothed(y, window) : y;
    for (std::size_t i = 0; i < y.size(); ++i) {
      at[x[i]].push_back(smooth[i]);
      if (window > 1) raw_at[x[i]].push_back(y[i]);
    }
  }
  Curve curve;
  curve.label = std::move(label);
  curve.color = color;
  for (const auto& [x, values] : at) {
    const study::Spread spread = study::spread(values);
    curve.x.push_back(x);
    curve.y.push_back(spread.mean);
    if (window > 1) curve.raw.push_back(study::spread(raw_at[x]).mean);
    if (runs.size() < 2) continue;
    if (band == study::BandKind::range) {
      const auto [low, high] = std::minmax_element(values.begin(), values.end());
      curve.low.push_back(*low);
      curve.high.push_back(*high);
    } else {
      const double deviation = values.size() > 1 ? spread.deviation : 0;
      curve.low.push_back(spread.mean - deviation);
      curve.high.push_back(spread.mean + deviation);
    }
  }
  return curve;
}

bool all_positive(const Chart& chart) { return !chart.empty() && extent(chart, false).low > 0; }

bool spans(const Chart& chart, double factor) {
  const Range range = extent(chart, false);
  return all_positive(chart) && range.high >= factor * range.low;
}

}  // namespace norma::report
