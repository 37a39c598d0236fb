#include "core/ops/pool.h"

#include <limits>
#include <vector>

#include "core/autograd.h"
#include "core/kernels/pool.h"
#include "core/ops/cast.h"
#include "core/ops/indexing.h"
#include "core/ops/movement.h"
#include "core/ops/reduce.h"

namespace norma {
namespace {

using kernels::PoolSizes;

// Where x comes from, and how its windows lie.
struct PoolAttrs {
  PoolSizes sizes;
  std::int64_t samples = 0, channels = 0;
};

// Gathers the element at position index[plane, k] of every plane: (planes, k).
Tensor gather_planes(const Tensor& x, std::int64_t planes, std::int64_t pixels,
                     const std::vector<std::int64_t>& index) {
  const std::int64_t each = planes == 0 ? 0 : static_cast<std::int64_t>(index.size()) / planes;
  return gather(reshape(x, {planes, pixels}), Tensor::from_ids({planes, each}, index), 1);
}

// The chosen elements, gathered: which ones they are has no gradient.
Tensor max_pool2d_composed(std::span<const Tensor> inputs, const void* attrs) {
  const auto& a = *static_cast<const PoolAttrs*>(attrs);
  const PoolSizes& s = a.sizes;
  std::vector<std::int32_t> chosen(static_cast<std::size_t>(s.planes * s.out_h * s.out_w));
  dispatch_compute(inputs[0].dtype(), "max_pool2d", [&]<class T>() {
    std::vector<T> y(chosen.size());
    kernels::max_pool_forward(s, inputs[0].data<T>(), y.data(), chosen.data());
  });
  const std::vector<std::int64_t> index(chosen.begin(), chosen.end());
  return reshape(gather_planes(inputs[0], s.planes, s.h * s.w, index),
                 {a.samples, a.channels, s.out_h, s.out_w});
}

void max_pool2d_backward(BackwardContext& ctx) {
  if (!ctx.needs(0)) return;
  const auto& a = ctx.attrs<PoolAttrs>();
  const Tensor& dy = ctx.grad_output();
  const Tensor index = ctx.saved(1);
  Destination d = ctx.destination(0);
  dispatch_compute(dy.dtype(), "max_pool2d", [&]<class T>() {
    kernels::max_pool_backward(a.sizes, dy.data<T>(), index.data<std::int32_t>(), d.accumulate,
                               d.tensor.mutable_data<T>());
  });
}

// The elements of every window, gathered out of the padded image, and their mean.
Tensor avg_pool2d_composed(std::span<const Tensor> inputs, const void* attrs) {
  const auto& a = *static_cast<const PoolAttrs*>(attrs);
  const PoolSizes& s = a.sizes;
  const Tensor padded =
      pad(pad(inputs[0], 2, s.padding_h, s.padding_h), 3, s.padding_w, s.padding_w);
  const std::int64_t h = padded.size(2), w = padded.size(3);
  std::vector<std::int64_t> index;
  for (std::int64_t p = 0; p < s.planes; ++p) {
    for (std::int64_t i = 0; i < s.out_h; ++i) {
      for (std::int64_t j = 0; j < s.out_w; ++j) {
        for (std::int64_t k = 0; k < s.kernel_h * s.kernel_w; ++k) {
          index.push_back((i * s.stride_h + k / s.kernel_w) * w + j * s.stride_w + k % s.kernel_w);
        }
      }
    }
  }
  const Tensor windows =
      reshape(gather_planes(padded, s.planes, h * w, index),
              {a.samples, a.channels, s.out_h, s.out_w, s.kernel_h * s.kernel_w});
  return mean(windows, {-1});
}

void avg_pool2d_backward(BackwardContext& ctx) {
  if (!ctx.needs(0)) return;
  const auto& a = ctx.attrs<PoolAttrs>();
  const Tensor& dy = ctx.grad_output();
  Destination d = ctx.destination(0);
  dispatch_compute(dy.dtype(), "avg_pool2d", [&]<class T>() {
    kernels::avg_pool_backward(a.sizes, dy.data<T>(), d.accumulate, d.tensor.mutable_data<T>());
  });
}

Tensor global_avg_pool_composed(std::span<const Tensor> inputs, const void*) {
  return mean(inputs[0], {2, 3});
}

void global_avg_pool_backward(BackwardContext& ctx) {
  if (!ctx.needs(0)) return;
  const Tensor& dy = ctx.grad_output();
  const std::int64_t pixels = ctx.input_shape(0).numel(2, 4);
  Destination d = ctx.destination(0);
  dispatch_compute(dy.dtype(), "global_avg_pool", [&]<class T>() {
    kernels::mean_planes_backward(dy.numel(), pixels, dy.data<T>(), d.accumulate,
                                  d.tensor.mutable_data<T>());
  });
}

void check_image(const char* op, const Tensor& x) {
  require(x.rank() == 4, "{}: x must have the axes (samples, channels, height, width); got {}", op,
          x.shape());
  require(is_floating(x.dtype()), "{}: x must have a floating type; got {}", op,
          name_of(x.dtype()));
}

PoolAttrs check_windows(const char* op, const Tensor& x, Extent kernel,
                        const Pool2dOptions& options) {
  check_image(op, x);
  const Extent stride = options.stride.value_or(kernel), padding = options.padding;
  check_extent(op, "kernel", kernel, 1);
  check_extent(op, "stride", stride, 1);
  check_extent(op, "padding", padding, 0);
  require(2 * padding.h <= kernel.h && 2 * padding.w <= kernel.w,
          "{}: padding must be at most half of the kernel {}; got {}", op, to_string(kernel),
          to_string(padding));
  const Extent out = window_counts(op, {x.size(2), x.size(3)}, kernel, stride, padding, 1);
  require(x.size(2) * x.size(3) <= std::numeric_limits<std::int32_t>::max(),
          "{}: expected an image of less than 2^31 pixels; got {}", op, x.shape());
  return {.sizes = {.planes = x.size(0) * x.size(1),
                    .h = x.size(2),
                    .w = x.size(3),
                    .out_h = out.h,
                    .out_w = out.w,
                    .kernel_h = kernel.h,
                    .kernel_w = kernel.w,
                    .stride_h = stride.h,
                    .stride_w = stride.w,
                    .padding_h = padding.h,
                    .padding_w = padding.w},
          .samples = x.size(0),
          .channels = x.size(1)};
}

}  // namespace

extern const OpInfo max_pool2d_op, avg_pool2d_op, global_avg_pool_op;
const OpInfo max_pool2d_op{"max_pool2d", max_pool2d_backward, max_pool2d_composed};
const OpInfo avg_pool2d_op{"avg_pool2d", avg_pool2d_backward, avg_pool2d_composed};
const OpInfo global_avg_pool_op{"global_avg_pool", global_avg_pool_backward,
                                global_avg_pool_composed};

Tensor max_pool2d(const Tensor& x, Extent kernel, Pool2dOptions options) {
  const PoolAttrs a = check_windows("max_pool2d", x, kernel, options);
  if (is_half(x.dtype())) return to(max_pool2d(to(x, DType::f32), kernel, options), x.dtype());
  Tensor y = Tensor::empty({a.samples, a.channels, a.sizes.out_h, a.sizes.out_w}, x.dtype());
  Tensor index;
  if (detail::should_record(std::span(&x, 1))) index = Tensor::empty(y.shape(), DType::i32);
  dispatch_compute(x.dtype(), "max_pool2d", [&]<class T>() {
    kernels::max_pool_forward(a.sizes, x.data<T>(), y.mutable_data<T>(),
                              index.defined() ? index.mutable_data<std::int32_t>() : nullptr);
  });
  record(max_pool2d_op, y, {x}, {x, index}, a);
  return y;
}

Tensor avg_pool2d(const Tensor& x, Extent kernel, Pool2dOptions options) {
  const PoolAttrs a = check_windows("avg_pool2d", x, kernel, options);
  if (is_half(x.dtype())) return to(avg_pool2d(to(x, DType::f32), kernel, options), x.dtype());
  Tensor y = Tensor::empty({a.samples, a.channels, a.sizes.out_h, a.sizes.out_w}, x.dtype());
  dispatch_compute(x.dtype(), "avg_pool2d", [&]<class T>() {
    kernels::avg_pool_forward(a.sizes, x.data<T>(), y.mutable_data<T>());
  });
  record(avg_pool2d_op, y, {x}, {x}, a);
  return y;
}

Tensor global_avg_pool(const Tensor& x) {
  check_image("global_avg_pool", x);
  require(x.size(2) * x.size(3) > 0, "global_avg_pool: cannot average over no pixels; got {}",
          x.shape());
  if (is_half(x.dtype())) return to(global_avg_pool(to(x, DType::f32)), x.dtype());
  Tensor y = Tensor::empty({x.size(0), x.size(1)}, x.dtype());
  dispatch_compute(x.dtype(), "global_avg_pool", [&]<class T>() {
    kernels::mean_planes_forward(y.numel(), x.size(2) * x.size(3), x.data<T>(),
                                 y.mutable_data<T>());
  });
  record(global_avg_pool_op, y, {x}, {x});
  return y;
}

}  // namespace norma
