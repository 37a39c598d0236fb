#include "apps/report/chart.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace norma::report {
namespace {

constexpr std::size_t kWindowsPerCurve = 60;  // smoothing windows that fit beside each other
constexpr double kExplosion = 3;              // times the highest first value
constexpr double kMargin = 0.06;              // of the range, free above the curves

// Mean of the finite values around each place.
std::vector<double> smoothed(const std::vector<double>& y, std::size_t window) {
  if (window <= 1) return y;
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

}  // namespace

bool Chart::empty() const {
  return std::all_of(curves.begin(), curves.end(), [](const Curve& c) { return c.x.empty(); });
}

Range y_range(const Chart& chart) {
  double low = std::numeric_limits<double>::infinity(), high = -low, first = -low;
  for (const Curve& curve : chart.curves) {
    if (!curve.y.empty()) first = std::max(first, curve.y.front());
    for (const std::vector<double>* values : {&curve.y, &curve.low, &curve.high}) {
      for (const double y : *values) {
        if (chart.log_y && y <= 0) continue;
        low = std::min(low, y);
        high = std::max(high, y);
      }
    }
  }
  for (const Level& level : chart.levels) {
    low = std::min(low, level.y);
    high = std::max(high, level.y);
    first = std::max(first, level.y);
  }
  if (!(low <= high)) return {};
  if (chart.log_y) {
    const double factor = std::max(1.2, std::pow(high / low, kMargin));
    return {low / factor, high * factor};
  }
  if (chart.cut_explosions && first > 0 && high > kExplosion * first) high = kExplosion * first;
  if (chart.from_zero && low > 0) low = 0;
  const double margin = kMargin * (high > low ? high - low : std::max(1.0, std::abs(high)));
  return {chart.from_zero && low == 0 ? 0 : low - margin, high + margin};
}

std::size_t smoothing_window(std::size_t n) {
  const std::size_t window = n / kWindowsPerCurve;
  return window <= 1 ? 1 : window | 1;
}

Curve mean_curve(std::string label, std::size_t color, std::span<const study::RunRecord> runs,
                 PointValue value, std::size_t window) {
  struct Sum {
    double sum = 0, low = 0, high = 0;
    int count = 0;
  };
  std::map<std::int64_t, Sum> steps;
  for (const study::RunRecord& run : runs) {
    std::vector<std::int64_t> at;
    std::vector<double> y;
    for (const study::TrainPoint& point : run.train) {
      if (!std::isfinite(value(point))) continue;
      at.push_back(point.step);
      y.push_back(value(point));
    }
    y = smoothed(y, window);
    for (std::size_t i = 0; i < y.size(); ++i) {
      Sum& s = steps[at[i]];
      s.low = s.count == 0 ? y[i] : std::min(s.low, y[i]);
      s.high = s.count == 0 ? y[i] : std::max(s.high, y[i]);
      s.sum += y[i];
      ++s.count;
    }
  }
  Curve curve;
  curve.label = std::move(label);
  curve.color = color;
  for (const auto& [step, s] : steps) {
    curve.x.push_back(static_cast<double>(step));
    curve.y.push_back(s.sum / s.count);
    if (runs.size() < 2) continue;
    curve.low.push_back(s.low);
    curve.high.push_back(s.high);
  }
  return curve;
}

}  // namespace norma::report
