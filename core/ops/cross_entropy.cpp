#include "core/ops/cross_entropy.h"

#include <algorithm>

#include "core/kernels/cross_entropy.h"
#include "core/ops/arithmetic.h"
#include "core/ops/cast.h"
#include "core/ops/indexing.h"
#include "core/ops/movement.h"
#include "core/ops/reduce.h"

namespace norma {
namespace {

struct Attrs {
  kernels::CrossEntropyShape shape;
  double scale;  // what the sum over the rows is multiplied by
};

Tensor composed(std::span<const Tensor> inputs, const void* attrs) {
  const auto& [shape, scale] = *static_cast<const Attrs*>(attrs);
  const Tensor x = reshape(inputs[0], {shape.rows, shape.cols});
  // Which rows count, and a target inside of the range for those that do not.
  Tensor counts = Tensor::ones({shape.rows}, DType::u8);
  Tensor targets = inputs[1].clone();
  if (shape.has_ignore) {
    std::uint8_t* c = counts.mutable_data<std::uint8_t>();
    std::int64_t* t = targets.mutable_data<std::int64_t>();
    for (std::int64_t r = 0; r < shape.rows; ++r) {
      c[r] = t[r] != shape.ignore;
      if (c[r] == 0) t[r] = 0;
    }
  }
  const Tensor z = logsumexp(x, {-1});
  const Tensor chosen = reshape(gather(x, reshape(targets, {shape.rows, 1}), 1), {shape.rows});
  const double s = shape.label_smoothing;
  Tensor loss = mul_scalar(sub(z, chosen), 1 - s);
  if (s > 0) loss = add(loss, mul_scalar(sub(z, mean(x, {-1})), s));
  if (shape.z_loss > 0) loss = add(loss, mul_scalar(mul(z, z), shape.z_loss));
  return mul_scalar(sum(where(counts, loss, Tensor::scalar(0.0, x.dtype()))), scale);
}

}  // namespace

extern const OpInfo cross_entropy_op;
const OpInfo cross_entropy_op{
    "cross_entropy",
    [](BackwardContext& ctx) {
      if (!ctx.needs(0)) return;
      const Attrs& attrs = ctx.attrs<Attrs>();
      const Tensor x = ctx.saved(0), targets = ctx.saved(1), stats = ctx.saved(2);
      const double dy = ctx.grad_output().item();
      Destination dx = ctx.destination(0);
      dispatch_compute(x.dtype(), "cross_entropy", [&]<class T>() {
        kernels::cross_entropy_backward(attrs.shape, x.data<T>(), targets.data<std::int64_t>(),
                                        stats.data<T>(), attrs.scale * dy, dx.accumulate,
                                        dx.tensor.mutable_data<T>());
      });
    },
    composed};

namespace {

enum class Over : bool { sum, mean };

CrossEntropySum apply(const Tensor& logits, const Tensor& targets,
                      const CrossEntropyOptions& options, Over over) {
  require(logits.rank() > 0 && logits.size(-1) > 0,
          "cross_entropy: expected logits of (..., classes); got {}", logits.shape());
  require(targets.shape() == logits.shape().sub(0, logits.rank() - 1),
          "cross_entropy: expected targets of shape {}, that of the logits {} without the classes; "
          "got {}",
          logits.shape().sub(0, logits.rank() - 1), logits.shape(), targets.shape());
  require(options.label_smoothing >= 0 && options.label_smoothing <= 1,
          "cross_entropy: expected label_smoothing in 0..1; got {}", options.label_smoothing);
  require(options.z_loss >= 0, "cross_entropy: expected z_loss of at least 0; got {}",
          options.z_loss);
  check_ids("cross_entropy", targets, logits.size(-1), options.ignore);
  if (is_half(logits.dtype())) {
    CrossEntropySum s = apply(to(logits, DType::f32), targets, options, over);
    s.sum = to(s.sum, logits.dtype());
    return s;
  }
  Attrs attrs{{targets.numel(), logits.size(-1), options.label_smoothing, options.z_loss,
               options.ignore.has_value(), options.ignore.value_or(0)},
              1.0};
  const std::int64_t* t = targets.data<std::int64_t>();
  const std::int64_t count =
      attrs.shape.has_ignore
          ? targets.numel() - std::count(t, t + targets.numel(), attrs.shape.ignore)
          : targets.numel();
  if (over == Over::mean) {
    attrs.scale = 1.0 / static_cast<double>(std::max<std::int64_t>(1, count));
  }
  Tensor stats = Tensor::empty({targets.numel(), 2}, logits.dtype());
  const double sum = dispatch_compute(logits.dtype(), "cross_entropy", [&]<class T>() {
    return kernels::cross_entropy(attrs.shape, logits.data<T>(), t, stats.mutable_data<T>());
  });
  Tensor y = Tensor::scalar(sum * attrs.scale, logits.dtype());
  record(cross_entropy_op, y, {logits, targets}, {logits, targets, stats}, attrs);
  return {y, count};
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& targets,
                     const CrossEntropyOptions& options) {
  return apply(logits, targets, options, Over::mean).sum;
}

CrossEntropySum cross_entropy_sum(const Tensor& logits, const Tensor& targets,
                                  const CrossEntropyOptions& options) {
  return apply(logits, targets, options, Over::sum);
}

}  // namespace norma
