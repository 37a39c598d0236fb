// Norms over contiguous runs: LayerNorm, RMSNorm, GroupNorm, InstanceNorm.
#pragma once

#include <cstdint>

namespace norma::kernels {

// The memory of one such norm. Run r holds elements r*cols .. r*cols+cols-1; element i of it
// belongs to channel (r % groups) * (cols / space) + i / space, which has one gain and one shift.
// LayerNorm and RMSNorm: groups 1, space 1. InstanceNorm: groups = channels, space = cols.
struct RowsShape {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t groups = 1;
  std::int64_t space = 1;
  std::int64_t counted = 0;  // the first elements of a run that enter its statistics (partial RMS)
  bool centre = true;        // subtract the mean
  double eps = 0;
  double gain_offset = 0;  // the gain is weight + gain_offset
  [[nodiscard]] std::int64_t channels() const { return groups * (cols / space); }
};

// for r, i: y = (x - mean[r]) * rstd[r] * (weight[c] + gain_offset) + bias[c]
// mean[r] = sum x / n (0 unless centre), rstd[r] = 1 / sqrt(sum (x - mean)^2 / n + eps).
// weight and bias may be null (1 and 0). mean, rstd and var have `rows` elements; mean and var
// may be null.
// Numerics: two passes; the mean is summed as differences from the run's first element, so that a
// constant run gives exactly 0, and once more where that element lies far from the others; a run
// whose squares leave the range is summed scaled, in f64.
void norm_rows_forward(const RowsShape& shape, const float* x, const float* weight,
                       const float* bias, float* y, float* mean, float* rstd, float* var);
void norm_rows_forward(const RowsShape& shape, const double* x, const double* weight,
                       const double* bias, double* y, double* mean, double* rstd, double* var);

// y once more, to the same bits, from the mean (null unless centre) and rstd that it gave.
void norm_rows_again(const RowsShape& shape, const float* x, const float* weight, const float* bias,
                     const float* mean, const float* rstd, float* y);
void norm_rows_again(const RowsShape& shape, const double* x, const double* weight,
                     const double* bias, const double* mean, const double* rstd, double* y);

// Where the gradients go; null for those that are not wanted. accumulate_*: add to what is there.
template <class T>
struct NormGradients {
  T* dx = nullptr;
  T* dweight = nullptr;
  T* dbias = nullptr;
  bool accumulate_dx = false;
  bool accumulate_dweight = false;
  bool accumulate_dbias = false;
};

// With g = dy * gain and z = (x - mean) * rstd:
// dx = rstd * (g - sum(g)/n [if centre] - z * sum(g z)/n [for the counted elements])
// dweight[c] = sum dy z, dbias[c] = sum dy over the elements of channel c.
// mean may be null (0).
void norm_rows_backward(const RowsShape& shape, const float* dy, const float* x,
                        const float* weight, const float* mean, const float* rstd,
                        const NormGradients<float>& out);
void norm_rows_backward(const RowsShape& shape, const double* dy, const double* x,
                        const double* weight, const double* mean, const double* rstd,
                        const NormGradients<double>& out);

}  // namespace norma::kernels
