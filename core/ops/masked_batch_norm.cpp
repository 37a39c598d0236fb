#include "core/ops/masked_batch_norm.h"

#include <cmath>

#include "core/ops/arithmetic.h"
#include "core/ops/cast.h"
#include "core/ops/math.h"
#include "core/ops/movement.h"
#include "core/ops/reduce.h"

namespace norma {

Tensor masked_batch_norm(const Tensor& x, const Tensor& mask, const Tensor& weight,
                         const Tensor& bias, BatchNormOptions options, RunningStatistics stats) {
  if (stats.kept() && !options.training) return batch_norm(x, weight, bias, options, stats);
  require(x.rank() == 2 && mask.shape() == Shape{x.size(0)},
          "batch_norm: expected x (N, C) and a mask (N); got {} and {}", x.shape(), mask.shape());
  if (is_half(x.dtype())) {
    const auto wide = [](const Tensor& t) { return t.defined() ? to(t, DType::f32) : t; };
    return to(masked_batch_norm(wide(x), mask, wide(weight), wide(bias), options, stats),
              x.dtype());
  }
  const Tensor counts = reshape(to(mask, x.dtype()), Shape{x.size(0), 1});
  const double n = sum(to(mask, DType::f64)).item();
  require(n > 1,
          "batch_norm: expected more than one token that counts to take statistics of; got {} of "
          "the {} under the mask; use larger batches",
          n, x.size(0));
  const auto mean_of = [&](const Tensor& t) { return sum(t * counts, {0}, Keep::yes) / n; };
  const Tensor about = mean_of(x.detach());
  const Tensor shifted = x - about;
  const Tensor rest = mean_of(shifted);
  const Tensor centred = shifted - rest;
  const Tensor var = mean_of(centred * centred);
  Tensor y = centred / sqrt(var + options.eps);
  if (weight.defined()) y = y * weight;
  if (bias.defined()) y = y + bias;
  if (options.training && stats.kept()) {
    const NoGrad off;
    const Shape channels{x.size(1)};
    check_running_statistics("batch_norm", stats, x.size(1), x.dtype());
    const double batches = static_cast<double>(count_batch(stats));
    update_running_statistics(stats, reshape(about + rest, channels),
                              reshape(var * (n / (n - 1)), channels),
                              options.momentum.value_or(1 / batches));
  }
  return y;
}

}  // namespace norma
