#include "optim/qk_clip.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace norma {

config::Fields QkClipConfig::fields() {
  using namespace config;
  return {field("tau", &QkClipConfig::tau,
                "Largest attention logit; a head above it has its queries and keys scaled down.",
                above(0))};
}

void QkClip::see(std::string_view path, const Tensor& largest) {
  const std::vector<double> heads = largest.to_vector();
  const auto at = seen_.find(path);
  if (at == seen_.end()) {
    seen_.emplace(path, heads);
    return;
  }
  for (std::size_t h = 0; h < heads.size(); ++h) {
    const double before = at->second[h];
    at->second[h] = std::isnan(heads[h]) ? heads[h] : std::max(before, heads[h]);
  }
}

std::int64_t QkClip::find(const std::string& name) const {
  for (std::int64_t i = 0; i < parameters_->count(); ++i) {
    if (parameters_->name(i) == name) return i;
  }
  return -1;
}

void QkClip::scale_head(std::int64_t index, std::int64_t head, std::int64_t heads, double factor) {
  if (!parameters_->tensor(index).requires_grad()) return;  // frozen
  Tensor part = parameters_->slice(parameters_->weights(), index);
  const std::int64_t n = part.numel() / heads;  // a weight (heads * width, in), a bias (...)
  dispatch_compute(part.dtype(), "qk_clip", [&]<class T>() {
    T* w = part.mutable_data<T>() + head * n;
    for (std::int64_t i = 0; i < n; ++i) w[i] *= static_cast<T>(factor);
  });
  parameters_->touch(index);
}

void QkClip::apply() {
  bool changed = false;
  for (const auto& [path, largest] : seen_) {
    const std::int64_t q = find(path + ".q.weight"), k = find(path + ".k.weight");
    require(q >= 0 && k >= 0,
            "optimizer.qk_clip: the attention at {} has no {}.q.weight and {}.k.weight", path, path,
            path);
    const auto heads = static_cast<std::int64_t>(largest.size());
    const std::int64_t q_bias = find(path + ".q.bias"), k_bias = find(path + ".k.bias");
    const bool shared = parameters_->tensor(k).size(0) != parameters_->tensor(q).size(0);
    for (std::int64_t h = 0; h < heads; ++h) {
      const double s = largest[static_cast<std::size_t>(h)];
      if (!(s > tau_) || !std::isfinite(s)) continue;
      const double factor = shared ? tau_ / s : std::sqrt(tau_ / s);
      for (const std::int64_t index : {q, q_bias}) {
        if (index >= 0) scale_head(index, h, heads, factor);
      }
      for (const std::int64_t index : {k, k_bias}) {
        if (index >= 0 && !shared) scale_head(index, h, heads, factor);
      }
      changed = true;
    }
  }
  if (changed) parameters_->publish();
}

}  // namespace norma
