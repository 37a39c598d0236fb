// Cross-entropy over rows of logits.
#pragma once

#include <cstdint>

namespace norma::kernels {

struct CrossEntropyShape {
  std::int64_t rows = 0, cols = 0;
  double label_smoothing = 0;
  double z_loss = 0;
  bool has_ignore = false;
  std::int64_t ignore = 0;
};

// The sum over the rows whose target is not `ignore` of
//   (1 - s) (z - x[t]) + s (z - mean(x)) + z_loss z^2,  z = log(sum(exp(x))), s = label_smoothing,
// in f64. `stats` (rows, 2) gets the maximum of each row and log(sum(exp(x - max))). Targets must
// lie in 0..cols-1 or be `ignore`. A row that is -inf throughout gives +inf.
double cross_entropy(const CrossEntropyShape& shape, const float* x, const std::int64_t* targets,
                     float* stats);
double cross_entropy(const CrossEntropyShape& shape, const double* x, const std::int64_t* targets,
                     double* stats);

// dx = scale * ((1 + 2 z_loss z) softmax(x) - (1 - s) [target] - s / cols), 0 for ignored rows and
// for rows that are -inf throughout. Adds to dx if `accumulate`.
void cross_entropy_backward(const CrossEntropyShape& shape, const float* x,
                            const std::int64_t* targets, const float* stats, double scale,
                            bool accumulate, float* dx);
void cross_entropy_backward(const CrossEntropyShape& shape, const double* x,
                            const std::int64_t* targets, const double* stats, double scale,
                            bool accumulate, double* dx);

}  // namespace norma::kernels
