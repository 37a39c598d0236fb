#include "core/ops/indexing.h"

#include "core/kernels/indexing.h"
#include "core/ops/arithmetic.h"
#include "core/ops/axes.h"
#include "core/ops/broadcast.h"
#include "core/ops/cast.h"
#include "core/ops/movement.h"

namespace norma {
namespace {

struct AxisAttrs {
  int axis;
};
struct EmbeddingAttrs {
  std::int64_t padding_id;
  bool has_padding;
};

// Checks that `index` is x's shape but for the axis, and its values.
int checked_index(const char* op, const Tensor& x, const Tensor& index, int axis) {
  const int a = checked_axis(op, x.shape(), axis);
  Shape expected = x.shape();
  if (index.rank() == x.rank()) expected.set(a, index.size(a));
  require(index.shape() == expected && index.dtype() == DType::i64,
          "{}: expected an index of i64 with x's shape {} but for axis {}; got {} of {}", op,
          x.shape(), a, name_of(index.dtype()), index.shape());
  check_ids(op, index, x.size(a));
  return a;
}

Tensor with_width(const Tensor& rows, const Shape& ids, const Shape& rest) {
  Shape shape = ids;
  for (std::int64_t n : rest) shape.push_back(n);
  return reshape(rows, shape);
}

Tensor embedding_composed(std::span<const Tensor> inputs, const void* attrs) {
  const auto& a = *static_cast<const EmbeddingAttrs*>(attrs);
  Tensor weight = inputs[0];
  const Tensor& ids = inputs[1];
  const std::int64_t rows = weight.size(0), width = weight.size(1);
  if (a.has_padding && a.padding_id < rows) {
    // The row is read through a constant.
    Tensor is_padding = Tensor::zeros({rows, 1}, DType::u8);
    is_padding.mutable_data<std::uint8_t>()[a.padding_id] = 1;
    weight = where(is_padding, weight.detach(), weight);
  }
  const Tensor index = broadcast_to(reshape(ids, {ids.numel(), 1}), {ids.numel(), width});
  return with_width(gather(weight, index, 0), ids.shape(), {width});
}

void gather_backward(BackwardContext& ctx) {
  if (!ctx.needs(0)) return;
  const int axis = ctx.attrs<AxisAttrs>().axis;
  const Tensor index = ctx.saved(0);
  const Tensor& dy = ctx.grad_output();
  if (ctx.create_graph() || !is_compute(dy.dtype())) {
    const Tensor zeros = Tensor::zeros(ctx.input_shape(0), dy.dtype());
    return ctx.set_grad(0, scatter_add(zeros, index, dy, axis));
  }
  Destination dx = ctx.destination(0);
  if (!dx.accumulate) dx.tensor.fill_(0);
  const AxisSplit s = split_at(ctx.input_shape(0), axis);
  dispatch_compute(dy.dtype(), "gather", [&]<class T>() {
    kernels::scatter_add(index.data<std::int64_t>(), dy.data<T>(), s.outer, s.n, s.inner,
                         index.size(axis), dx.tensor.mutable_data<T>());
  });
}

void embedding_backward(BackwardContext& ctx) {
  if (!ctx.needs(0)) return;
  const auto& a = ctx.attrs<EmbeddingAttrs>();
  const Tensor ids = ctx.saved(1);
  const Tensor& dy = ctx.grad_output();
  const Shape& weight = ctx.input_shape(0);
  const auto add_into = [&]<class T>(const Tensor& g, Tensor& dw, bool accumulate) {
    kernels::add_rows_by_id(g.data<T>(), ids.data<std::int64_t>(), ids.numel(), weight[0],
                            weight[1], a.has_padding ? a.padding_id : -1, accumulate,
                            dw.mutable_data<T>());
  };
  const DType type = ctx.input_dtype(0);
  if (is_half(type)) {
    // Summed in f32 and rounded once.
    Tensor sums = Tensor::empty(weight, DType::f32);
    add_into.operator()<float>(to(dy, DType::f32), sums, false);
    return ctx.set_grad(0, to(sums, type));
  }
  Destination dw = ctx.destination(0);
  dispatch_compute(type, "embedding", [&]<class T>() {
    add_into.template operator()<T>(to(dy, type), dw.tensor, dw.accumulate);
  });
}

}  // namespace

void check_ids(const char* op, const Tensor& ids, std::int64_t limit,
               std::optional<std::int64_t> except) {
  require(ids.dtype() == DType::i64, "{}: expected ids of i64; got {}", op, name_of(ids.dtype()));
  const std::int64_t* p = ids.data<std::int64_t>();
  for (std::int64_t k = 0; k < ids.numel(); ++k) {
    const bool inside = static_cast<std::uint64_t>(p[k]) < static_cast<std::uint64_t>(limit);
    require(inside || (except && p[k] == *except),
            "{}: expected ids of at least 0 and less than {}; got {} at position {}", op, limit,
            p[k], k);
  }
}

extern const OpInfo gather_op, scatter_add_op, embedding_op;

const OpInfo gather_op{"gather", gather_backward};

Tensor gather(const Tensor& x, const Tensor& index, int axis) {
  const int a = checked_index("gather", x, index, axis);
  Tensor y = Tensor::empty(index.shape(), x.dtype());
  const AxisSplit s = split_at(x.shape(), a);
  kernels::gather(x.raw(), index.data<std::int64_t>(), s.outer, s.n, s.inner, index.size(a),
                  size_of(x.dtype()), y.mutable_raw());
  record(gather_op, y, {x}, {index}, AxisAttrs{a});
  return y;
}

const OpInfo scatter_add_op{
    "scatter_add", [](BackwardContext& ctx) {
      if (ctx.needs(0)) ctx.set_grad(0, ctx.grad_output());
      if (ctx.needs(1)) {
        ctx.set_grad(1, gather(ctx.grad_output(), ctx.saved(0), ctx.attrs<AxisAttrs>().axis));
      }
    }};

Tensor scatter_add(const Tensor& x, const Tensor& index, const Tensor& source, int axis) {
  const int a = checked_index("scatter_add", x, index, axis);
  require(source.shape() == index.shape() && source.dtype() == x.dtype(),
          "scatter_add: expected a source of {} with the index's shape {}; got {} of {}",
          name_of(x.dtype()), index.shape(), name_of(source.dtype()), source.shape());
  if (is_half(x.dtype())) {
    return to(scatter_add(to(x, DType::f32), index, to(source, DType::f32), a), x.dtype());
  }
  Tensor y = x.clone();
  const AxisSplit s = split_at(x.shape(), a);
  dispatch_compute(x.dtype(), "scatter_add", [&]<class T>() {
    kernels::scatter_add(index.data<std::int64_t>(), source.data<T>(), s.outer, s.n, s.inner,
                         index.size(a), y.mutable_data<T>());
  });
  record(scatter_add_op, y, {x, source}, {index}, AxisAttrs{a});
  return y;
}

const OpInfo embedding_op{"embedding", embedding_backward, embedding_composed};

Tensor embedding(const Tensor& weight, const Tensor& ids, EmbeddingOptions options) {
  require(weight.rank() == 2, "embedding: expected a weight of (rows, width); got {}",
          weight.shape());
  require(is_floating(weight.dtype()), "embedding: expected a weight of a floating type; got {}",
          name_of(weight.dtype()));
  check_ids("embedding", ids, weight.size(0));
  const std::int64_t padding = options.padding_id.value_or(0);
  require(padding >= 0 && (!options.padding_id || padding < weight.size(0)),
          "embedding: expected a padding_id of at least 0 and less than {}; got {}", weight.size(0),
          padding);
  Shape shape = ids.shape();
  shape.push_back(weight.size(1));
  Tensor y = Tensor::empty(shape, weight.dtype());
  kernels::gather_rows(weight.raw(), ids.data<std::int64_t>(), ids.numel(),
                       weight.size(1) * size_of(weight.dtype()), y.mutable_raw());
  record(embedding_op, y, {weight, ids}, {weight, ids},
         EmbeddingAttrs{padding, options.padding_id.has_value()});
  return y;
}

Tensor index_select(const Tensor& x, const Tensor& ids) {
  require(x.rank() > 0, "index_select: expected at least one axis; got a scalar");
  const Shape rest = x.shape().sub(1, x.rank());
  const Tensor rows = reshape(x, {x.size(0), rest.numel()});
  check_ids("index_select", ids, x.size(0));
  if (is_floating(x.dtype())) return with_width(embedding(rows, ids), ids.shape(), rest);
  Tensor y = Tensor::empty({ids.numel(), rest.numel()}, x.dtype());
  kernels::gather_rows(x.raw(), ids.data<std::int64_t>(), ids.numel(),
                       rest.numel() * size_of(x.dtype()), y.mutable_raw());
  return with_width(y, ids.shape(), rest);
}

}  // namespace norma
