#include "core/ops/norm_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "core/kernels/norm_rows.h"
#include "core/ops/arithmetic.h"
#include "core/ops/cast.h"
#include "core/ops/gradient_destination.h"
#include "core/ops/math.h"
#include "core/ops/movement.h"
#include "core/ops/norm_channels.h"
#include "core/ops/reduce.h"

namespace norma {

extern const OpInfo norm_rows_op;

namespace {

using kernels::RowsShape;

Tensor norm_rows_composed(std::span<const Tensor> inputs, const void* attrs) {
  const RowsShape& s = *static_cast<const RowsShape*>(attrs);
  const Tensor& x = inputs[0];
  const std::int64_t per_row = s.cols / s.space;
  const Shape affine{1, s.groups, per_row, 1};
  const double n = static_cast<double>(s.counted);
  Tensor c = reshape(x, {s.rows / s.groups, s.groups, per_row, s.space});
  if (s.centre) c = c - sum(c, {2, 3}, Keep::yes) / n;
  Tensor squares = c * c;
  if (s.counted < s.cols) {
    std::vector<double> counts(static_cast<std::size_t>(s.cols), 0.0);
    std::fill_n(counts.begin(), s.counted, 1.0);
    squares = squares * Tensor::from({1, 1, per_row, s.space}, counts, x.dtype());
  }
  Tensor y = c / sqrt(sum(squares, {2, 3}, Keep::yes) / n + s.eps);
  if (inputs[1].defined()) y = y * (reshape(inputs[1], affine) + s.gain_offset);
  if (inputs[2].defined()) y = y + reshape(inputs[2], affine);
  return reshape(y, x.shape());
}

void norm_rows_backward(BackwardContext& ctx) {
  const RowsShape& s = ctx.attrs<RowsShape>();
  const Tensor& dy = ctx.grad_output();
  const Tensor x = ctx.saved(0), weight = ctx.saved(1), mean = ctx.saved(3), rstd = ctx.saved(4);
  dispatch_compute(dy.dtype(), "norm_rows", [&]<class T>() {
    kernels::NormGradients<T> out;
    gradient_destination(ctx, 0, out.dx, out.accumulate_dx);
    gradient_destination(ctx, 1, out.dweight, out.accumulate_dweight);
    gradient_destination(ctx, 2, out.dbias, out.accumulate_dbias);
    kernels::norm_rows_backward(s, dy.data<T>(), x.data<T>(),
                                weight.defined() ? weight.data<T>() : nullptr,
                                mean.defined() ? mean.data<T>() : nullptr, rstd.data<T>(), out);
  });
}

// Statistics of a run that a caller wants besides y.
struct RunMoments {
  Tensor mean, var;
};

template <class T>
const T* pointer(const Tensor& t) {
  return t.defined() ? t.data<T>() : nullptr;
}

void norm_rows_recompute(BackwardContext& ctx) {
  const Tensor x = ctx.saved(0), weight = ctx.saved(1), bias = ctx.saved(2);
  const Tensor mean = ctx.saved(3), rstd = ctx.saved(4);
  Tensor y = Tensor::empty(x.shape(), x.dtype());
  dispatch_compute(x.dtype(), "norm_rows", [&]<class T>() {
    kernels::norm_rows_again(ctx.attrs<RowsShape>(), x.data<T>(), pointer<T>(weight),
                             pointer<T>(bias), pointer<T>(mean), rstd.data<T>(),
                             y.mutable_data<T>());
  });
  ctx.set_recomputed(std::move(y));
}

// x, weight and bias in one compute type.
Tensor compute(const Tensor& x, const Tensor& weight, const Tensor& bias, const RowsShape& s,
               RunMoments* moments) {
  const Shape per_run{s.rows};
  Tensor rstd = Tensor::empty(per_run, x.dtype()), mean, var;
  if (s.centre) mean = Tensor::empty(per_run, x.dtype());
  if (moments) var = Tensor::empty(per_run, x.dtype());
  Tensor y = Tensor::empty(x.shape(), x.dtype());
  dispatch_compute(x.dtype(), "norm_rows", [&]<class T>() {
    kernels::norm_rows_forward(
        s, x.data<T>(), pointer<T>(weight), pointer<T>(bias), y.mutable_data<T>(),
        mean.defined() ? mean.mutable_data<T>() : nullptr, rstd.mutable_data<T>(),
        var.defined() ? var.mutable_data<T>() : nullptr);
  });
  record(norm_rows_op, y, {x, weight, bias}, {x, weight, bias, mean, rstd}, s);
  allow_recompute(y);
  if (moments) *moments = {mean, var};
  return y;
}

void check_affine(const char* name, const char* argument, const Tensor& t, const Shape& shape,
                  const Tensor& x) {
  if (!t.defined()) return;
  require(t.shape() == shape, "{}: {} must have shape {} to fit x {}; got {}", name, argument,
          shape, x.shape(), t.shape());
}

Tensor norm_rows(const Tensor& x, const Tensor& weight, const Tensor& bias,
                 const NormRowsOptions& o, const char* name, RunMoments* moments) {
  require(x.defined() && is_floating(x.dtype()), "{}: expected a floating x; got {}", name,
          x.defined() ? name_of(x.dtype()) : "none");
  require(o.cols >= 0 && o.groups >= 1 && o.space >= 1 && o.cols % o.space == 0,
          "{}: space {} must divide cols {}, and groups {} be at least 1", name, o.space, o.cols,
          o.groups);
  require(o.p > 0 && o.p <= 1, "{}: p must lie in (0, 1]; got {}", name, o.p);
  require(o.p == 1 || o.space == 1, "{}: p = {} needs one gain an element (space 1); got space {}",
          name, o.p, o.space);
  require(o.eps >= 0, "{}: eps must be at least 0; got {}", name, o.eps);
  RowsShape s;
  s.cols = o.cols;
  s.rows = o.cols == 0 ? 0 : x.numel() / o.cols;
  require(s.rows * o.cols == x.numel() && s.rows % o.groups == 0,
          "{}: x {} must hold whole runs of {} elements, in groups of {}", name, x.shape(), o.cols,
          o.groups);
  s.groups = o.groups;
  s.space = o.space;
  // ceil(n p) of the p that was meant: 100 * 0.07 is a hair above 7.
  s.counted = static_cast<std::int64_t>(
      std::ceil(std::max(static_cast<double>(o.cols) * o.p - 1e-9, 1e-9)));
  s.centre = o.centre;
  s.eps = o.eps;
  s.gain_offset = o.unit_offset ? 1 : 0;
  for (const Tensor* t : {&weight, &bias}) {
    if (!t->defined()) continue;
    require(t->numel() == s.channels(), "{}: weight and bias must have {} elements; got shape {}",
            name, s.channels(), t->shape());
    require(t->dtype() == x.dtype() || (is_half(x.dtype()) && t->dtype() == DType::f32),
            "{}: weight and bias must have the type of x, {}; got {}", name, name_of(x.dtype()),
            name_of(t->dtype()));
  }
  if (!is_half(x.dtype())) return compute(x, weight, bias, s, moments);
  if (o.statistics == Statistics::input) {
    const auto narrow = [&](const Tensor& t) { return t.defined() ? to(t, x.dtype()) : t; };
    return norm_rows_composed(std::array{x, narrow(weight), narrow(bias)}, &s);
  }
  const auto wide = [](const Tensor& t) { return t.defined() ? to(t, DType::f32) : t; };
  if (o.cast == GainCast::after_gain || !weight.defined()) {
    return to(compute(wide(x), wide(weight), wide(bias), s, moments), x.dtype());
  }
  require(o.groups == 1 && o.space == 1, "{}: before_gain needs one gain an element", name);
  const Tensor z = to(compute(wide(x), {}, {}, s, moments), x.dtype());
  const Tensor gain = to(o.unit_offset ? wide(weight) + 1.0 : weight, x.dtype());
  const Tensor y = z * gain;
  return bias.defined() ? y + to(bias, x.dtype()) : y;
}

}  // namespace

const OpInfo norm_rows_op{"norm_rows", norm_rows_backward, norm_rows_composed, norm_rows_recompute};

Tensor norm_rows(const Tensor& x, const Tensor& weight, const Tensor& bias,
                 const NormRowsOptions& options, const char* name) {
  return norm_rows(x, weight, bias, options, name, nullptr);
}

Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias,
                  LayerNormOptions options) {
  const int rank = x.shape().rank();
  require(options.axes >= 1 && options.axes <= rank,
          "layer_norm: expected 1 to {} axes of x {}; got {}", rank, x.shape(), options.axes);
  const Shape normalised = x.shape().sub(rank - options.axes, rank);
  check_affine("layer_norm", "weight", weight, normalised, x);
  check_affine("layer_norm", "bias", bias, normalised, x);
  NormRowsOptions o;
  o.cols = normalised.numel();
  o.eps = options.eps;
  o.statistics = options.statistics;
  return norm_rows(x, weight, bias, o, "layer_norm");
}

Tensor rms_norm(const Tensor& x, const Tensor& weight, RmsNormOptions options) {
  require(x.shape().rank() >= 1, "rms_norm: expected x with at least one axis; got a scalar");
  check_affine("rms_norm", "weight", weight, {x.shape()[-1]}, x);
  NormRowsOptions o;
  o.cols = x.shape()[-1];
  o.centre = false;
  o.eps = options.eps;
  o.unit_offset = options.unit_offset;
  o.p = options.p;
  o.cast = options.cast;
  o.statistics = options.statistics;
  return norm_rows(x, weight, {}, o, "rms_norm");
}

Tensor group_norm(const Tensor& x, const Tensor& weight, const Tensor& bias,
                  GroupNormOptions options) {
  const int rank = x.shape().rank();
  require(rank >= 2, "group_norm: expected x (N, C, ...); got {}", x.shape());
  const std::int64_t channels = x.shape()[1];
  require(options.groups >= 1 && channels % options.groups == 0,
          "group_norm: the groups must be at least 1 and divide the {} channels; got {} groups",
          channels, options.groups);
  check_affine("group_norm", "weight", weight, {channels}, x);
  check_affine("group_norm", "bias", bias, {channels}, x);
  NormRowsOptions o;
  o.groups = options.groups;
  o.space = std::max<std::int64_t>(1, x.shape().numel(2, rank));  // an empty x has no runs
  o.cols = channels / options.groups * o.space;
  o.eps = options.eps;
  return norm_rows(x, weight, bias, o, "group_norm");
}

Tensor instance_norm(const Tensor& x, const Tensor& weight, const Tensor& bias,
                     InstanceNormOptions options, RunningStatistics stats) {
  const int rank = x.shape().rank();
  require(rank >= 3, "instance_norm: expected x (N, C, L) or (N, C, H, W); got {}", x.shape());
  const std::int64_t samples = x.shape()[0], channels = x.shape()[1];
  const std::int64_t space = x.shape().numel(2, rank);
  check_affine("instance_norm", "weight", weight, {channels}, x);
  check_affine("instance_norm", "bias", bias, {channels}, x);
  const DType type = is_half(x.dtype()) ? DType::f32 : x.dtype();
  if (stats.kept()) check_running_statistics("instance_norm", stats, channels, type);
  if (stats.kept() && !options.training) {
    return batch_norm(x, weight, bias, {.eps = options.eps, .training = false}, stats);
  }
  require(!options.training || space != 1,
          "instance_norm: expected more than one value a channel to take statistics of; got x {}",
          x.shape());
  NormRowsOptions o;
  o.groups = channels;
  o.space = o.cols = std::max<std::int64_t>(1, space);  // an empty x has no runs
  o.eps = options.eps;
  if (!stats.kept()) return norm_rows(x, weight, bias, o, "instance_norm");
  RunMoments moments;
  Tensor y = norm_rows(x, weight, bias, o, "instance_norm", &moments);
  if (x.numel() == 0) return y;
  const NoGrad off;
  const double m = static_cast<double>(space), n = static_cast<double>(samples);
  const Shape by_sample{samples, channels};
  // PyTorch's instance norm counts no batches; only the plain average needs their number.
  const double part =
      options.momentum ? *options.momentum : 1.0 / static_cast<double>(count_batch(stats));
  update_running_statistics(stats, sum(reshape(moments.mean, by_sample), {0}) / n,
                            sum(reshape(moments.var, by_sample), {0}) * (m / (m - 1) / n), part);
  return y;
}

}  // namespace norma
