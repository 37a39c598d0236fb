// BatchNorm: statistics of a channel over all samples and positions.
#pragma once

#include <cstdint>

#include "core/kernels/norm_rows.h"

namespace norma::kernels {

// A dense (samples, channels, space) array.
struct ChannelsShape {
  std::int64_t samples = 0;
  std::int64_t channels = 0;
  std::int64_t space = 1;
  double eps = 0;
  [[nodiscard]] std::int64_t count() const { return samples * space; }  // values of a channel
};

// for n, c, i: y = (x - mean[c]) * rstd[c] * weight[c] + bias[c], the statistics of the batch:
// mean[c] and var[c] (biased) over n and i, rstd[c] = 1 / sqrt(var[c] + eps), which are outputs.
// weight and bias may be null (1 and 0). Numerics as norm_rows_forward.
void norm_channels_forward(const ChannelsShape& shape, const float* x, const float* weight,
                           const float* bias, float* y, float* mean, float* var, float* rstd);
void norm_channels_forward(const ChannelsShape& shape, const double* x, const double* weight,
                           const double* bias, double* y, double* mean, double* var, double* rstd);

// The same with given statistics.
void norm_channels_apply(const ChannelsShape& shape, const float* x, const float* weight,
                         const float* bias, const float* mean, const float* rstd, float* y);
void norm_channels_apply(const ChannelsShape& shape, const double* x, const double* weight,
                         const double* bias, const double* mean, const double* rstd, double* y);

// With z = (x - mean) * rstd and m values a channel:
// dx = weight * rstd * (dy - sum(dy)/m - z * sum(dy z)/m), with given statistics weight * rstd *
// dy; dweight[c] = sum dy z, dbias[c] = sum dy.
void norm_channels_backward(const ChannelsShape& shape, bool given, const float* dy, const float* x,
                            const float* weight, const float* mean, const float* rstd,
                            const NormGradients<float>& out);
void norm_channels_backward(const ChannelsShape& shape, bool given, const double* dy,
                            const double* x, const double* weight, const double* mean,
                            const double* rstd, const NormGradients<double>& out);

}  // namespace norma::kernels
