#include "core/ops/movement.h"

#include <array>
#include <numeric>

#include "core/kernels/move.h"
#include "core/ops/broadcast.h"

namespace norma {
namespace {

struct PermuteAttrs {
  std::array<int, kMaxRank> axes;
  int rank;
};

struct AxisAttrs {
  int axis;
  std::int64_t start;  // slice: first element; pad: zeros in front
};

// Writes or adds dy, the gradient of x[start, start + m) along an axis, into the gradient of x.
void slice_gradient(const Tensor& dy, const AxisSplit& x, std::int64_t start, std::int64_t m,
                    Destination into) {
  const std::int64_t size = size_of(dy.dtype());
  const std::int64_t x_row = x.n * x.inner, dy_row = m * x.inner;
  const std::int64_t first = start * x.inner, last = first + dy_row;
  if (into.accumulate) {
    dispatch_compute(dy.dtype(), "slice", [&]<class T>() {
      kernels::add_rows(dy.data<T>(), dy_row, into.tensor.mutable_data<T>() + first, x_row, x.outer,
                        dy_row);
    });
    return;
  }
  std::byte* dx = into.tensor.mutable_raw();
  kernels::zero_rows(dx, x_row * size, x.outer, first * size);
  kernels::copy_rows(dy.raw(), dy_row * size, dx + first * size, x_row * size, x.outer,
                     dy_row * size);
  kernels::zero_rows(dx + last * size, x_row * size, x.outer, (x_row - last) * size);
}

std::int64_t checked_position(const Tensor& x, int axis, std::int64_t position) {
  return position < 0 ? position + x.size(axis) : position;
}

}  // namespace

extern const OpInfo reshape_op;
const OpInfo reshape_op{"reshape", [](BackwardContext& ctx) {
                          if (ctx.needs(0))
                            ctx.set_grad(0, reshape(ctx.grad_output(), ctx.input_shape(0)));
                        }};

Tensor reshape(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  require(x.numel() == shape.numel(), "reshape: shape {} has {} elements; {} has {}", x.shape(),
          x.numel(), shape, shape.numel());
  Tensor y = Tensor::view(x.storage(), x.offset_bytes(), shape, x.dtype());
  record(reshape_op, y, {x}, {});
  return y;
}

Tensor flatten(const Tensor& x, int first, int last) {
  const int a = checked_axis("flatten", x.shape(), first);
  const int b = checked_axis("flatten", x.shape(), last);
  require(a <= b, "flatten: expected first <= last; got axes {} and {} of {}", first, last,
          x.shape());
  Shape shape = x.shape().sub(0, a);
  shape.push_back(x.shape().numel(a, b + 1));
  for (int i = b + 1; i < x.rank(); ++i) shape.push_back(x.size(i));
  return reshape(x, shape);
}

extern const OpInfo permute_op;
const OpInfo permute_op{
    "permute", [](BackwardContext& ctx) {
      if (!ctx.needs(0)) return;
      const auto& a = ctx.attrs<PermuteAttrs>();
      std::array<int, kMaxRank> inverse{};
      for (int i = 0; i < a.rank; ++i) {
        inverse[static_cast<std::size_t>(a.axes[static_cast<std::size_t>(i)])] = i;
      }
      ctx.set_grad(
          0, permute(ctx.grad_output(),
                     Axes(std::span<const int>(inverse.data(), static_cast<std::size_t>(a.rank)))));
    }};

Tensor permute(const Tensor& x, const Axes& axes) {
  require(axes.size() == x.rank(), "permute: expected the {} axes of {}; got {}", x.rank(),
          x.shape(), axes.size());
  if (x.rank() > 0) (void)axis_mask("permute", x.shape(), axes);
  PermuteAttrs attrs{{}, x.rank()};
  Shape shape;
  bool same = true;
  for (int i = 0; i < x.rank(); ++i) {
    const int axis = x.shape().normalize(axes[i]);
    attrs.axes[static_cast<std::size_t>(i)] = axis;
    shape.push_back(x.size(axis));
    same = same && axis == i;
  }
  if (same) return x;
  Tensor y = Tensor::empty(shape, x.dtype());
  kernels::permute(x.raw(), x.shape(),
                   std::span<const int>(attrs.axes.data(), static_cast<std::size_t>(x.rank())),
                   size_of(x.dtype()), y.mutable_raw());
  record(permute_op, y, {x}, {}, attrs);
  return y;
}

Tensor transpose(const Tensor& x, int a, int b) {
  std::vector<int> axes(static_cast<std::size_t>(x.rank()));
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[static_cast<std::size_t>(checked_axis("transpose", x.shape(), a))],
            axes[static_cast<std::size_t>(checked_axis("transpose", x.shape(), b))]);
  return permute(x, axes);
}

extern const OpInfo concatenate_op;
const OpInfo concatenate_op{"concatenate", [](BackwardContext& ctx) {
                              const int axis = ctx.attrs<AxisAttrs>().axis;
                              std::int64_t start = 0;
                              for (int i = 0; i < ctx.num_inputs(); ++i) {
                                const std::int64_t stop = start + ctx.input_shape(i)[axis];
                                if (ctx.needs(i)) {
                                  ctx.set_grad(i, slice(ctx.grad_output(), axis, start, stop));
                                }
                                start = stop;
                              }
                            }};

Tensor concatenate(std::span<const Tensor> tensors, int axis) {
  require(!tensors.empty(), "concatenate: expected at least one tensor; got none");
  const Tensor& first = tensors[0];
  const int a = checked_axis("concatenate", first.shape(), axis);
  Shape shape = first.shape();
  shape.set(a, 0);
  for (const Tensor& x : tensors) {
    Shape rest = x.shape();
    if (rest.rank() == shape.rank()) rest.set(a, shape[a]);
    require(rest == shape && x.dtype() == first.dtype(),
            "concatenate: expected {} of {} but for axis {}; got {} of {}", name_of(first.dtype()),
            first.shape(), a, name_of(x.dtype()), x.shape());
    shape.set(a, shape[a] + x.size(a));
  }
  Tensor y = Tensor::empty(shape, first.dtype());
  const AxisSplit s = split_at(shape, a);
  const std::int64_t size = size_of(first.dtype());
  std::byte* to = y.mutable_raw();
  for (const Tensor& x : tensors) {
    const std::int64_t bytes = x.size(a) * s.inner * size;
    kernels::copy_rows(x.raw(), bytes, to, s.n * s.inner * size, s.outer, bytes);
    to += bytes;
  }
  record(concatenate_op, std::span<Tensor>(&y, 1), tensors, {}, AxisAttrs{a, 0});
  return y;
}

Tensor concatenate(std::initializer_list<Tensor> tensors, int axis) {
  return concatenate(std::span<const Tensor>(tensors.begin(), tensors.size()), axis);
}

extern const OpInfo slice_op;
const OpInfo slice_op{"slice", [](BackwardContext& ctx) {
                        if (!ctx.needs(0)) return;
                        const auto& a = ctx.attrs<AxisAttrs>();
                        const Shape& x = ctx.input_shape(0);
                        const Tensor& dy = ctx.grad_output();
                        const std::int64_t m = dy.size(a.axis);
                        if (ctx.create_graph() || !is_compute(dy.dtype())) {
                          ctx.set_grad(0, pad(dy, a.axis, a.start, x[a.axis] - a.start - m));
                        } else {
                          slice_gradient(dy, split_at(x, a.axis), a.start, m, ctx.destination(0));
                        }
                      }};

Tensor slice(const Tensor& x, int axis, std::int64_t start, std::int64_t stop) {
  const int a = checked_axis("slice", x.shape(), axis);
  const std::int64_t first = checked_position(x, a, start), last = checked_position(x, a, stop);
  require(0 <= first && first <= last && last <= x.size(a),
          "slice: expected 0 <= start <= stop <= {} along axis {} of {}; got {} and {}", x.size(a),
          a, x.shape(), start, stop);
  if (first == 0 && last == x.size(a)) return x;
  Shape shape = x.shape();
  shape.set(a, last - first);
  const AxisSplit s = split_at(x.shape(), a);
  const std::int64_t size = size_of(x.dtype());
  const std::int64_t offset = first * s.inner * size, bytes = (last - first) * s.inner * size;
  Tensor y;
  if (s.outer == 1) {
    y = Tensor::view(x.storage(), x.offset_bytes() + offset, shape, x.dtype());
  } else {
    y = Tensor::empty(shape, x.dtype());
    kernels::copy_rows(x.raw() + offset, s.n * s.inner * size, y.mutable_raw(), bytes, s.outer,
                       bytes);
  }
  record(slice_op, y, {x}, {}, AxisAttrs{a, first});
  return y;
}

std::vector<Tensor> split(const Tensor& x, int axis, std::span<const std::int64_t> sizes) {
  const int a = checked_axis("split", x.shape(), axis);
  const std::int64_t sum = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  require(sum == x.size(a), "split: expected sizes that add up to {}, axis {} of {}; got {}",
          x.size(a), a, x.shape(), sum);
  std::vector<Tensor> parts;
  std::int64_t start = 0;
  for (std::int64_t n : sizes) {
    parts.push_back(slice(x, a, start, start + n));
    start += n;
  }
  return parts;
}

std::vector<Tensor> split(const Tensor& x, int axis, std::initializer_list<std::int64_t> sizes) {
  return split(x, axis, std::span<const std::int64_t>(sizes.begin(), sizes.size()));
}

extern const OpInfo pad_op;
const OpInfo pad_op{"pad", [](BackwardContext& ctx) {
                      if (!ctx.needs(0)) return;
                      const auto& a = ctx.attrs<AxisAttrs>();
                      ctx.set_grad(0, slice(ctx.grad_output(), a.axis, a.start,
                                            a.start + ctx.input_shape(0)[a.axis]));
                    }};

Tensor pad(const Tensor& x, int axis, std::int64_t before, std::int64_t after) {
  const int a = checked_axis("pad", x.shape(), axis);
  require(before >= 0 && after >= 0, "pad: expected widths of at least 0; got {} and {}", before,
          after);
  if (before == 0 && after == 0) return x;
  Shape shape = x.shape();
  shape.set(a, before + x.size(a) + after);
  Tensor y = Tensor::empty(shape, x.dtype());
  slice_gradient(x, split_at(shape, a), before, x.size(a), {y, false});
  record(pad_op, y, {x}, {}, AxisAttrs{a, before});
  return y;
}

namespace {

// Repeats along a new axis at `at`, then joins it with the axis `axis` beside it.
Tensor repeat_at(const char* op, const Tensor& x, int axis, std::int64_t times, int at) {
  require(times >= 0, "{}: expected at least 0 times; got {}", op, times);
  require(x.rank() < kMaxRank, "{}: expected fewer than {} axes; got {}", op, kMaxRank, x.shape());
  Shape once, many, joined = x.shape();
  for (int i = 0; i <= x.rank(); ++i) {
    if (i == at) {
      once.push_back(1);
      many.push_back(times);
    }
    if (i == x.rank()) break;
    once.push_back(x.size(i));
    many.push_back(x.size(i));
  }
  joined.set(axis, x.size(axis) * times);
  return reshape(broadcast_to(reshape(x, once), many), joined);
}

}  // namespace

Tensor repeat_interleave(const Tensor& x, int axis, std::int64_t times) {
  const int a = checked_axis("repeat_interleave", x.shape(), axis);
  return repeat_at("repeat_interleave", x, a, times, a + 1);
}

Tensor repeat(const Tensor& x, int axis, std::int64_t times) {
  const int a = checked_axis("repeat", x.shape(), axis);
  return repeat_at("repeat", x, a, times, a);
}

}  // namespace norma
