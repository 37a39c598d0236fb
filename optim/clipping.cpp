#include "optim/clipping.h"

#include <cmath>
#include <vector>

#include "core/error.h"
#include "core/kernels/optimizer.h"

namespace norma {
namespace {

std::vector<kernels::Segment> segments_with_gradient(const FlatParameters& parameters) {
  std::vector<kernels::Segment> segments;
  for (std::int64_t i = 0; i < parameters.count(); ++i) {
    if (!parameters.has_gradient(i)) continue;
    if (!segments.empty() && segments.back().end == parameters.begin(i)) {
      segments.back().end = parameters.end(i);
    } else {
      segments.push_back({parameters.begin(i), parameters.end(i), 0});
    }
  }
  return segments;
}

// The norm where the plain sum of squares overflowed: of finite f64 values above 1e154, or because
// something is not finite. Finds the culprit.
template <class T>
void measure_again(const FlatParameters& parameters, const std::vector<kernels::Segment>& segments,
                   Clipped& result) {
  const T* g = parameters.gradients().data<T>();
  const double most = kernels::max_abs<T>(segments, g);
  if (std::isfinite(most)) {
    result.norm = most * std::sqrt(kernels::sum_of_squares<T>(segments, g, most));
    return;
  }
  result.finite = false;
  for (std::int64_t i = 0; i < parameters.count(); ++i) {
    if (!parameters.has_gradient(i)) continue;
    const kernels::Segment own{parameters.begin(i), parameters.end(i), 0};
    if (!std::isfinite(kernels::max_abs<T>({&own, 1}, g))) {
      result.parameter = parameters.name(i);
      return;
    }
  }
}

}  // namespace

Clipped gradient_norm(FlatParameters& parameters) {
  parameters.gather_gradients();
  const std::vector<kernels::Segment> segments = segments_with_gradient(parameters);
  Clipped result;
  dispatch_compute(parameters.dtype(), "gradient_norm", [&]<class T>() {
    result.norm =
        std::sqrt(kernels::sum_of_squares<T>(segments, parameters.gradients().data<T>(), 1));
    if (!std::isfinite(result.norm)) measure_again<T>(parameters, segments, result);
  });
  return result;
}

Clipped clip_gradients(FlatParameters& parameters, const ClippingConfig& config,
                       double grad_scale) {
  for (const auto& [name, limit] :
       {std::pair{"clip_norm", config.clip_norm}, std::pair{"clip_value", config.clip_value}}) {
    require(!limit || *limit > 0,
            "{}: expected a number above 0; got {}; leave it out for no limit", name,
            limit.value_or(0));
  }
  constexpr double kTorchEps = 1e-6;  // torch.nn.utils.clip_grad_norm_ adds it to the norm
  Clipped result = gradient_norm(parameters);
  result.norm *= std::fabs(grad_scale);
  result.grad_scale = grad_scale;
  if (!std::isfinite(result.norm)) result.finite = false;
  if (!result.finite) return result;
  if (config.clip_norm) {
    result.grad_scale *= std::min(1.0, *config.clip_norm / (result.norm + kTorchEps));
  }
  if (config.clip_value) {
    const std::vector<kernels::Segment> segments = segments_with_gradient(parameters);
    dispatch_compute(parameters.dtype(), "clip_gradients", [&]<class T>() {
      kernels::scale_and_clamp<T>(segments, result.grad_scale, *config.clip_value,
                                  parameters.gradients().mutable_data<T>());
    });
    result.grad_scale = 1;
  }
  return result;
}

}  // namespace norma
