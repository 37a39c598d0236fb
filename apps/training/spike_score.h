// The spike score of a series: how often a value leaps away from those before it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/parameters.h"

namespace norma {

// Share of the values, in percent, that lie at least 7 standard deviations from the average of the
// 1000 values before them. The first 100 values are not judged, since so few do not tell the
// spread, but count. A value that is not finite is a spike, and takes no part in averages.
// Source: OLMo 2 (arXiv 2501.00656), section 3.2; the number of values that are not judged, and the
// average being over values before the one judged, are ours.
class SpikeScore {
 public:
  static constexpr std::size_t kWindow = 1000;
  static constexpr std::size_t kFewest = 100;
  static constexpr double kDeviations = 7;

  void add(double value);
  // 0 of an empty series.
  [[nodiscard]] double percent() const;

  // "<name>.window" (f64) and "<name>.counts" (i64). Put back, the series goes on in the same bits.
  [[nodiscard]] std::vector<NamedTensor> state(const std::string& name) const;
  // Reads its two tensors among `state`. Throws Error if one is missing or has another form.
  void load_state(const std::vector<NamedTensor>& state, const std::string& name);

 private:
  [[nodiscard]] bool is_spike(double value) const;

  std::vector<double> window_;  // the last finite values; a ring
  std::size_t next_ = 0;        // where the next one goes
  std::int64_t values_ = 0;
  std::int64_t spikes_ = 0;
};

}  // namespace norma
