// An axis of a picture: its range, and where the marks stand.
#pragma once

#include <string>
#include <vector>

namespace norma::report {

// Values that span this factor get a log axis, and colours by the logarithm, where nothing else is
// asked for.
constexpr double kLogFrom = 30;

// Where a value stands between two ends, by the logarithm or evenly: 0 at `low`, 1 at `high`.
[[nodiscard]] double share_of_range(double value, double low, double high, bool log);

struct Tick {
  double at = 0;
  std::string label;
};

struct Axis {
  double low = 0, high = 1;
  bool log = false;
  std::vector<Tick> ticks;

  // 0 at the low end, 1 at the high one.
  [[nodiscard]] double place(double value) const { return share_of_range(value, low, high, log); }
};

// An axis of this range with about `most` marks at round numbers: 1, 2, 5 times a power of ten; on
// a log axis that spans a factor of 1,000 or more, powers alone. A range without width is widened.
[[nodiscard]] Axis make_axis(double low, double high, bool log, std::size_t most);

// A number as pictures show it, three digits: "0.40", "12.3", "4.1e+07", "-" where there is none.
[[nodiscard]] std::string short_number(double x);

}  // namespace norma::report
