#include "apps/report/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace norma::report {
namespace {

constexpr std::size_t kFewestTicks = 2;
constexpr double kTiny = 1e-9;  // of a step or a range: what counts as on the edge, or as none
constexpr double kMost = 1e300, kLeast = 1e-300;

std::vector<Tick> linear_ticks(double low, double high, std::size_t most) {
  const double raw = (high - low) / static_cast<double>(most);
  const double power = std::pow(10, std::floor(std::log10(raw)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= raw * (1 - kTiny)) {
      step = factor * power;
      break;
    }
  }
  std::vector<Tick> ticks;
  const double first = std::ceil(low / step - kTiny), last = std::floor(high / step + kTiny);
  for (double k = first; k <= last; ++k) {
    const double x = k == 0 ? 0 : k * step;
    ticks.push_back({x, fmt::format("{:.6g}", x)});
  }
  return ticks;
}

std::vector<Tick> log_ticks(double low, double high, std::size_t most) {
  const double first = std::floor(std::log10(low)), last = std::ceil(std::log10(high));
  const bool fine = std::log10(high / low) < 3;
  const double stride =
      fine ? 1 : std::max(1.0, std::round((last - first) / static_cast<double>(most)));
  std::vector<Tick> ticks;
  for (double power = first; power <= last; power += stride) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double x = factor * std::pow(10, power);
      if (x < low * (1 - kTiny) || x > high * (1 + kTiny) || (factor > 1 && !fine)) continue;
      ticks.push_back({x, fmt::format("{:g}", x)});
    }
  }
  return ticks;
}

}  // namespace

double share_of_range(double value, double low, double high, bool log) {
  if (log) return (std::log(value) - std::log(low)) / (std::log(high) - std::log(low));
  return (value - low) / (high - low);
}

Axis make_axis(double low, double high, bool log, std::size_t most) {
  // A margin may have gone beyond what a double holds.
  low = std::clamp(low, log ? kLeast : -kMost, kMost);
  high = std::clamp(high, low, kMost);
  // A range of rounding errors (a constant rate) is one value, and has no steps between its ends.
  if (!(high - low > kTiny * std::max(std::abs(low), std::abs(high)))) {
    // One value alone stands in the middle.
    const double half = log ? 0 : low == 0 ? 1 : std::abs(low) / 2;
    high = log ? low * 2 : low + half;
    low = log ? low / 2 : low - half;
  }
  Axis axis{low, high, log, {}};
  if (log) axis.ticks = log_ticks(low, high, most);
  // A short range on a log axis is nearly even.
  if (axis.ticks.size() < kFewestTicks) axis.ticks = linear_ticks(low, high, most);
  return axis;
}

std::string short_number(double x) {
  if (std::isnan(x)) return "-";
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  const double size = std::abs(x);
  if (size != 0 && (size < 1e-3 || size >= 1e5)) return fmt::format("{:.1e}", x);
  if (size < 0.095) return fmt::format("{:.3g}", x);
  return fmt::format("{:.{}f}", x, size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
}

}  // namespace norma::report
