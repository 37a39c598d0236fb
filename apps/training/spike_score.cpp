#include "apps/training/spike_score.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace norma {

bool SpikeScore::is_spike(double value) const {
  if (!std::isfinite(value)) return true;
  if (window_.size() < kFewest) return false;
  const auto count = static_cast<double>(window_.size());
  double sum = 0, squares = 0;
  for (double x : window_) sum += x;
  const double mean = sum / count;
  for (double x : window_) squares += (x - mean) * (x - mean);
  const double distance = std::fabs(value - mean);
  return distance > 0 && distance >= kDeviations * std::sqrt(squares / count);
}

void SpikeScore::add(double value) {
  ++values_;
  spikes_ += is_spike(value);
  if (!std::isfinite(value)) return;
  if (window_.size() < kWindow) {
    window_.push_back(value);
  } else {
    window_[next_] = value;
    next_ = (next_ + 1) % kWindow;
  }
}

double SpikeScore::percent() const {
  return values_ == 0 ? 0 : 100 * static_cast<double>(spikes_) / static_cast<double>(values_);
}

std::vector<NamedTensor> SpikeScore::state(const std::string& name) const {
  const std::vector<std::int64_t> counts{values_, spikes_, static_cast<std::int64_t>(next_)};
  return {{name + ".window",
           Tensor::from({static_cast<std::int64_t>(window_.size())}, window_, DType::f64)},
          {name + ".counts", Tensor::from_ids({3}, counts)}};
}

void SpikeScore::load_state(const std::vector<NamedTensor>& state, const std::string& name) {
  const auto find = [&](const std::string& key, DType dtype) {
    const auto at = std::find_if(state.begin(), state.end(),
                                 [&](const NamedTensor& t) { return t.name == name + key; });
    require(at != state.end() && at->tensor.dtype() == dtype && at->tensor.shape().rank() == 1,
            "spike score: expected a tensor {}{} of {} with one axis", name, key, name_of(dtype));
    return at->tensor;
  };
  const std::vector<double> window = find(".window", DType::f64).to_vector();
  const std::vector<std::int64_t> counts = find(".counts", DType::i64).to_ids();
  require(counts.size() == 3 && window.size() <= kWindow && counts[2] >= 0 &&
              counts[2] < static_cast<std::int64_t>(kWindow),
          "spike score: {}.window and {}.counts do not fit each other", name, name);
  window_ = window;
  values_ = counts[0];
  spikes_ = counts[1];
  next_ = static_cast<std::size_t>(counts[2]);
}

}  // namespace norma
