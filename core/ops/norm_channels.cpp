#include "core/ops/norm_channels.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/kernels/norm_channels.h"
#include "core/ops/arithmetic.h"
#include "core/ops/cast.h"
#include "core/ops/gradient_destination.h"
#include "core/ops/math.h"
#include "core/ops/movement.h"
#include "core/ops/reduce.h"

namespace norma {

extern const OpInfo norm_channels_op;

namespace {

using kernels::ChannelsShape;

// Inputs of the op: x, weight, bias, and where `given`, mean and var.
struct Attrs {
  ChannelsShape shape;
  bool given;
};

Tensor norm_channels_composed(std::span<const Tensor> inputs, const void* attrs) {
  const auto& [s, given] = *static_cast<const Attrs*>(attrs);
  const Tensor& x = inputs[0];
  const Shape affine{1, s.channels, 1};
  const double m = static_cast<double>(s.count());
  const Tensor flat = reshape(x, {s.samples, s.channels, s.space});
  const Tensor mean = given ? reshape(inputs[3], affine) : sum(flat, {0, 2}, Keep::yes) / m;
  const Tensor c = flat - mean;
  const Tensor var = given ? reshape(inputs[4], affine) : sum(c * c, {0, 2}, Keep::yes) / m;
  Tensor y = c / sqrt(var + s.eps);
  if (inputs[1].defined()) y = y * reshape(inputs[1], affine);
  if (inputs[2].defined()) y = y + reshape(inputs[2], affine);
  return reshape(y, x.shape());
}

void norm_channels_backward(BackwardContext& ctx) {
  const Attrs& attrs = ctx.attrs<Attrs>();
  const Tensor& dy = ctx.grad_output();
  const Tensor x = ctx.saved(0), weight = ctx.saved(1), mean = ctx.saved(5), rstd = ctx.saved(6);
  dispatch_compute(dy.dtype(), "batch_norm", [&]<class T>() {
    kernels::NormGradients<T> out;
    gradient_destination(ctx, 0, out.dx, out.accumulate_dx);
    gradient_destination(ctx, 1, out.dweight, out.accumulate_dweight);
    gradient_destination(ctx, 2, out.dbias, out.accumulate_dbias);
    kernels::norm_channels_backward(attrs.shape, attrs.given, dy.data<T>(), x.data<T>(),
                                    weight.defined() ? weight.data<T>() : nullptr, mean.data<T>(),
                                    rstd.data<T>(), out);
  });
}

}  // namespace

const OpInfo norm_channels_op{"norm_channels", norm_channels_backward, norm_channels_composed};

Tensor batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias,
                  BatchNormOptions options, RunningStatistics stats) {
  const int rank = x.shape().rank();
  require(rank >= 2 && is_floating(x.dtype()),
          "batch_norm: expected a floating x (N, C), (N, C, L) or (N, C, H, W); got {} of {}",
          x.shape(), name_of(x.dtype()));
  const DType type = is_half(x.dtype()) ? DType::f32 : x.dtype();
  Attrs a{};
  ChannelsShape& s = a.shape;
  s.samples = x.shape()[0];
  s.channels = x.shape()[1];
  s.space = x.shape().numel(2, rank);
  s.eps = options.eps;
  a.given = stats.kept() && !options.training;
  for (const auto& [name, t] : {std::pair{"weight", &weight}, std::pair{"bias", &bias}}) {
    if (!t->defined()) continue;
    require(t->shape() == Shape{s.channels},
            "batch_norm: {} must have shape ({}) to fit x {}; got {}", name, s.channels, x.shape(),
            t->shape());
    require(t->dtype() == x.dtype() || t->dtype() == type,
            "batch_norm: {} must have the type of x, {}; got {}", name, name_of(x.dtype()),
            name_of(t->dtype()));
  }
  if (stats.kept()) check_running_statistics("batch_norm", stats, s.channels, type);
  require(!options.training || s.count() != 1,
          "batch_norm: expected more than one value a channel to take statistics of; got x {}; use "
          "larger batches, or drop the last one",
          x.shape());
  if (is_half(x.dtype())) {
    const auto wide = [](const Tensor& t) { return t.defined() ? to(t, DType::f32) : t; };
    return to(batch_norm(wide(x), wide(weight), wide(bias), options, stats), x.dtype());
  }
  Tensor y = Tensor::empty(x.shape(), type);
  Tensor mean = Tensor::empty({s.channels}, type), rstd = mean.clone(), var;
  dispatch_compute(type, "batch_norm", [&]<class T>() {
    const T* w = weight.defined() ? weight.data<T>() : nullptr;
    const T* b = bias.defined() ? bias.data<T>() : nullptr;
    if (a.given) {
      // Copies: a later training step changes the running ones in place.
      mean = stats.mean.clone();
      var = stats.var.clone();
      T* r = rstd.mutable_data<T>();
      for (std::int64_t c = 0; c < s.channels; ++c) {
        r[c] = static_cast<T>(1 / std::sqrt(static_cast<double>(var.data<T>()[c]) + s.eps));
      }
      kernels::norm_channels_apply(s, x.data<T>(), w, b, mean.data<T>(), rstd.data<T>(),
                                   y.mutable_data<T>());
    } else {
      var = Tensor::empty({s.channels}, type);
      kernels::norm_channels_forward(s, x.data<T>(), w, b, y.mutable_data<T>(),
                                     mean.mutable_data<T>(), var.mutable_data<T>(),
                                     rstd.mutable_data<T>());
    }
  });
  const Tensor none;
  record(norm_channels_op, y, {x, weight, bias, a.given ? mean : none, a.given ? var : none},
         {x, weight, bias, a.given ? mean : none, a.given ? var : none, mean, rstd}, a);
  if (options.training && stats.kept() && s.count() > 0) {
    const NoGrad off;
    const double m = static_cast<double>(s.count());
    const double batches = static_cast<double>(count_batch(stats));
    update_running_statistics(stats, mean, var * (m / (m - 1)),
                              options.momentum.value_or(1 / batches));
  }
  return y;
}

}  // namespace norma
