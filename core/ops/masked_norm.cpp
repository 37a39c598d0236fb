#include "core/ops/masked_norm.h"

#include <algorithm>
#include <vector>

#include "core/ops/arithmetic.h"
#include "core/ops/cast.h"
#include "core/ops/math.h"
#include "core/ops/movement.h"
#include "core/ops/reduce.h"

namespace norma {
namespace {

struct Normed {
  Tensor y;
  Tensor mean, var;  // (C): the mean over the groups of each one's mean and unbiased variance
  std::int64_t groups = 0;  // that have rows that count; without any, mean and var are undefined
};

// x (G, N, C): each channel of a group over those of its N rows where mask (G, N) is 1.
Normed normed_over(const char* name, const Tensor& x, const Tensor& mask, const Tensor& weight,
                   const Tensor& bias, double eps, bool training) {
  const std::int64_t groups = x.size(0), rows = x.size(1);
  require(mask.shape() == Shape{groups, rows},
          "{}: expected a mask (N) or (N, T) that fits x; got {} for x {}", name, mask.shape(),
          x.shape());
  const Tensor counts = reshape(to(mask, x.dtype()), {groups, rows, 1});
  std::vector<double> n = sum(to(mask, DType::f64), {1}).to_vector(), share(n.size(), 0.0);
  Normed result;
  for (double& in_group : n) {
    require(!training || in_group != 1,
            "{}: expected more than one token that counts to take statistics of; got 1 of the {} "
            "under the mask; use larger batches, or a norm over the features",
            name, rows);
    result.groups += in_group > 0;
    share[static_cast<std::size_t>(&in_group - n.data())] = in_group > 0 ? 1 : 0;
    in_group = std::max(1.0, in_group);
  }
  const Shape each{groups, 1, 1};
  const Tensor number = Tensor::from(each, n, x.dtype());
  const auto mean_of = [&](const Tensor& t) { return sum(t * counts, {1}, Keep::yes) / number; };
  const Tensor about = mean_of(x.detach());
  const Tensor shifted = x - about;
  const Tensor rest = mean_of(shifted);
  const Tensor centred = shifted - rest;
  const Tensor var = mean_of(centred * centred);
  result.y = centred / sqrt(var + eps);
  if (weight.defined()) result.y = result.y * weight;
  if (bias.defined()) result.y = result.y + bias;
  if (result.groups == 0) return result;
  const NoGrad off;
  const auto over_groups = [&](const Tensor& t) {
    return sum(t * Tensor::from(each, share, x.dtype()), {0, 1}) /
           static_cast<double>(result.groups);
  };
  for (double& in_group : n) in_group = in_group / std::max(1.0, in_group - 1);
  result.mean = over_groups(about + rest);
  result.var = over_groups(var * Tensor::from(each, n, x.dtype()));
  return result;
}

Tensor wide(const Tensor& t) { return t.defined() ? to(t, DType::f32) : t; }

}  // namespace

Tensor masked_batch_norm(const Tensor& x, const Tensor& mask, const Tensor& weight,
                         const Tensor& bias, BatchNormOptions options, RunningStatistics stats) {
  if (stats.kept() && !options.training) return batch_norm(x, weight, bias, options, stats);
  require(x.rank() == 2 && mask.shape() == Shape{x.size(0)},
          "batch_norm: expected x (N, C) and a mask (N); got {} and {}", x.shape(), mask.shape());
  if (is_half(x.dtype())) {
    return to(masked_batch_norm(wide(x), mask, wide(weight), wide(bias), options, stats),
              x.dtype());
  }
  const Normed one =
      normed_over("batch_norm", reshape(x, {1, x.size(0), x.size(1)}),
                  reshape(mask, {1, x.size(0)}), weight, bias, options.eps, options.training);
  if (options.training && stats.kept() && one.groups > 0) {
    check_running_statistics("batch_norm", stats, x.size(1), x.dtype());
    const auto batches = static_cast<double>(count_batch(stats));
    update_running_statistics(stats, one.mean, one.var, options.momentum.value_or(1 / batches));
  }
  return reshape(one.y, x.shape());
}

Tensor masked_instance_norm(const Tensor& x, const Tensor& mask, const Tensor& weight,
                            const Tensor& bias, InstanceNormOptions options,
                            RunningStatistics stats) {
  if (stats.kept() && !options.training) {
    return transpose(instance_norm(transpose(x), weight, bias, options, stats));
  }
  require(x.rank() == 3, "instance_norm: expected x (N, T, C); got {}", x.shape());
  if (is_half(x.dtype())) {
    return to(masked_instance_norm(wide(x), mask, wide(weight), wide(bias), options, stats),
              x.dtype());
  }
  const Normed all =
      normed_over("instance_norm", x, mask, weight, bias, options.eps, options.training);
  if (stats.kept() && all.groups > 0) {
    check_running_statistics("instance_norm", stats, x.size(2), x.dtype());
    // As in instance_norm: only the plain average needs the number of batches.
    const double part =
        options.momentum ? *options.momentum : 1.0 / static_cast<double>(count_batch(stats));
    update_running_statistics(stats, all.mean, all.var, part);
  }
  return all.y;
}

}  // namespace norma
