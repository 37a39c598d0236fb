#include "core/ops/attention.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>
#include <vector>

#include "core/kernels/attention.h"
#include "core/ops/arithmetic.h"
#include "core/ops/cast.h"
#include "core/ops/gradient_destination.h"
#include "core/ops/math.h"
#include "core/ops/matmul.h"
#include "core/ops/movement.h"
#include "core/ops/softmax.h"

namespace norma {

extern const OpInfo attention_op;
extern const OpInfo attention_stack_op;

namespace {

using kernels::AttentionShape;

// (T, S) of 1 where causality and window let query i see key j.
Tensor visible(const AttentionShape& s) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < s.queries; ++i) {
    const std::int64_t position = i + s.keys - s.queries;
    for (std::int64_t j = 0; j < s.keys; ++j) {
      const bool late = s.causal && j > position;
      const bool far = s.window > 0 && std::llabs(position - j) >= s.window;
      values.push_back(late || far ? 0 : 1);
    }
  }
  return Tensor::from({s.queries, s.keys}, values, DType::u8);
}

// Inputs: q, k, v, bias, mask.
Tensor attention_composed(std::span<const Tensor> inputs, const void* attrs) {
  const AttentionShape& s = *static_cast<const AttentionShape*>(attrs);
  const DType type = inputs[0].dtype();
  const std::int64_t group = s.heads / s.kv_heads;
  const Shape weights{s.batch, s.kv_heads, group, s.queries, s.keys};
  const auto by_head = [&](const Tensor& x, std::int64_t length, std::int64_t per_kv_head) {
    return reshape(permute(x, {0, 2, 1, 3}), {s.batch, s.kv_heads, per_kv_head, length, s.width});
  };
  const Tensor q = by_head(inputs[0], s.queries, group);
  const Tensor k = by_head(inputs[1], s.keys, 1), v = by_head(inputs[2], s.keys, 1);
  Tensor logits = matmul(q, k, {.transpose_b = true}) * s.scale;
  if (s.softcap > 0) logits = tanh(logits / s.softcap) * s.softcap;
  if (inputs[3].defined()) {
    logits = logits + reshape(inputs[3], {s.kv_heads, group, s.queries, s.keys});
  }
  const Tensor hidden = Tensor::scalar(-std::numeric_limits<double>::infinity(), type);
  logits = where(visible(s), logits, hidden);
  if (inputs[4].defined()) {
    const std::int64_t samples = s.mask_sample_stride > 0 ? s.batch : 1;
    const std::int64_t queries = s.mask_query_stride > 0 ? s.queries : 1;
    logits = where(reshape(inputs[4], {samples, 1, 1, queries, s.keys}), logits, hidden);
  }
  Tensor p = softmax(logits, -1);
  if (s.dropout > 0) {
    std::vector<double> factors(static_cast<std::size_t>(weights.numel()));
    kernels::attention_dropout(s, factors.data());
    p = p * Tensor::from(weights, factors, type);
  }
  const Tensor y = reshape(matmul(p, v), {s.batch, s.heads, s.queries, s.width});
  return permute(y, {0, 2, 1, 3});
}

// Inputs: q, k and v one behind the other, bias, mask.
Tensor attention_stack_composed(std::span<const Tensor> inputs, const void* attrs) {
  const AttentionShape& s = *static_cast<const AttentionShape*>(attrs);
  std::vector<Tensor> parts;
  for (std::int64_t i = 0; i < 3; ++i) {
    parts.push_back(reshape(slice(inputs[0], 0, i, i + 1), {s.batch, s.keys, s.heads, s.width}));
  }
  parts.insert(parts.end(), inputs.begin() + 1, inputs.end());
  return reshape(attention_composed(parts, attrs), {s.batch, s.queries, s.heads * s.width});
}

template <class T>
const T* pointer(const Tensor& t) {
  return t.defined() ? t.data<T>() : nullptr;
}

// What the op saved behind its floating inputs.
struct Kept {
  Tensor bias, mask, y, stats;
  Kept(const BackwardContext& ctx, int first)
      : bias(ctx.saved(first)),
        mask(ctx.saved(first + 1)),
        y(ctx.saved(first + 2)),
        stats(ctx.saved(first + 3)) {}
};

template <class T>
void run_backward(const BackwardContext& ctx, const Kept& kept, const T* q, const T* k, const T* v,
                  const kernels::AttentionGradients<T>& out) {
  kernels::attention_backward(ctx.attrs<AttentionShape>(),
                              {q, k, v, pointer<T>(kept.bias), pointer<std::uint8_t>(kept.mask)},
                              kept.y.data<T>(), kept.stats.data<T>(), ctx.grad_output().data<T>(),
                              out);
}

void attention_backward(BackwardContext& ctx) {
  const Tensor q = ctx.saved(0), k = ctx.saved(1), v = ctx.saved(2);
  const Kept kept(ctx, 3);
  dispatch_compute(q.dtype(), "attention", [&]<class T>() {
    kernels::AttentionGradients<T> out;
    gradient_destination(ctx, 0, out.dq, out.accumulate_dq);
    gradient_destination(ctx, 1, out.dk, out.accumulate_dk);
    gradient_destination(ctx, 2, out.dv, out.accumulate_dv);
    gradient_destination(ctx, 3, out.dbias, out.accumulate_dbias);
    run_backward(ctx, kept, q.data<T>(), k.data<T>(), v.data<T>(), out);
  });
}

void attention_stack_backward(BackwardContext& ctx) {
  const Kept kept(ctx, 1);
  // The kernel reads a head before it writes the head's gradients.
  Tensor in_place = ctx.take_input(0);
  const Tensor qkv = in_place.defined() ? in_place : ctx.saved(0);
  const std::int64_t part = qkv.numel() / 3;
  dispatch_compute(qkv.dtype(), "attention_stack", [&]<class T>() {
    kernels::AttentionGradients<T> out;
    if (in_place.defined()) {
      out.dq = in_place.mutable_data<T>();
    } else {
      gradient_destination(ctx, 0, out.dq, out.accumulate_dq);
    }
    gradient_destination(ctx, 1, out.dbias, out.accumulate_dbias);
    if (out.dq) {
      out.dk = out.dq + part;
      out.dv = out.dk + part;
      out.accumulate_dk = out.accumulate_dv = out.accumulate_dq;
    }
    const T* q = qkv.data<T>();
    run_backward(ctx, kept, q, q + part, q + 2 * part, out);
    if (in_place.defined()) ctx.set_grad(0, std::move(in_place));
  });
}

// The sizes `s` with what the options say, after a check of these.
AttentionShape checked_shape(const char* op, const AttentionOptions& o, DType dtype,
                             AttentionShape s) {
  require(s.heads >= 1 && s.kv_heads >= 1 && s.heads % s.kv_heads == 0,
          "{}: the {} kv heads must divide the {} heads", op, s.kv_heads, s.heads);
  const Shape of_keys{s.batch, s.keys}, of_pairs{s.batch, s.queries, s.keys};
  const Shape shared{1, s.queries, s.keys}, bias{s.heads, s.queries, s.keys};
  require(
      !o.mask.defined() ||
          (o.mask.dtype() == DType::u8 &&
           (o.mask.shape() == of_keys || o.mask.shape() == of_pairs || o.mask.shape() == shared)),
      "{}: mask must have shape {}, {} or {} and type u8 (1: the key counts); got {} of {}; what "
      "is added to the logits goes into bias",
      op, of_keys, of_pairs, shared, o.mask, o.mask.defined() ? name_of(o.mask.dtype()) : "none");
  require(!o.bias.defined() || (o.bias.dtype() == dtype && o.bias.shape() == bias),
          "{}: bias must have shape {} and the type of q; got {} of {}", op, bias, o.bias,
          o.bias.defined() ? name_of(o.bias.dtype()) : "none");
  require(o.dropout >= 0 && o.dropout <= 1, "{}: dropout must lie in [0, 1]; got {}", op,
          o.dropout);
  require(o.softcap >= 0 && std::isfinite(o.softcap), "{}: softcap must be at least 0; got {}", op,
          o.softcap);
  require(o.window >= 0, "{}: window must be at least 0; got {}", op, o.window);
  require(!o.scale || std::isfinite(*o.scale), "{}: scale must be a number; got {}", op,
          o.scale.value_or(1));
  s.scale =
      o.scale.value_or(1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(1, s.width))));
  s.softcap = o.softcap;
  s.causal = o.causal;
  s.window = o.window;
  s.dropout = o.dropout;
  s.dropout_key = o.dropout_key;
  if (o.mask.defined()) {
    const bool pairs = o.mask.shape().rank() == 3;
    s.mask_query_stride = pairs ? s.keys : 0;
    const bool one_for_all = pairs && o.mask.shape()[0] == 1;
    s.mask_sample_stride = one_for_all ? 0 : s.keys * (pairs ? s.queries : 1);
  }
  return s;
}

AttentionOptions widened(const AttentionOptions& o) {
  AttentionOptions wide = o;
  if (o.bias.defined()) wide.bias = to(o.bias, DType::f32);
  return wide;
}

// y and stats from q, k and v.
template <class T>
void run_forward(const AttentionShape& s, const AttentionOptions& o, const T* q, const T* k,
                 const T* v, Tensor& y, Tensor& stats) {
  stats = Tensor::empty({s.batch, s.heads, s.queries, 2}, y.dtype());
  std::vector<T> largest;
  if (o.largest_logit) largest.resize(static_cast<std::size_t>(s.batch * s.heads));
  kernels::attention_forward(s, {q, k, v, pointer<T>(o.bias), pointer<std::uint8_t>(o.mask)},
                             y.mutable_data<T>(), stats.mutable_data<T>(),
                             o.largest_logit ? largest.data() : nullptr);
  if (!o.largest_logit) return;
  Tensor most = Tensor::full({s.heads}, -std::numeric_limits<double>::infinity(), y.dtype());
  T* m = most.mutable_data<T>();
  for (std::size_t i = 0; i < largest.size(); ++i) {
    T& of_head = m[static_cast<std::int64_t>(i) % s.heads];
    if (std::isnan(largest[i]) || largest[i] > of_head) of_head = largest[i];
  }
  *o.largest_logit = most;
}

}  // namespace

const OpInfo attention_op{"attention", attention_backward, attention_composed};
const OpInfo attention_stack_op{"attention_stack", attention_stack_backward,
                                attention_stack_composed};

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o) {
  require(q.defined() && k.defined() && v.defined() && q.shape().rank() == 4 &&
              k.shape().rank() == 4 && k.shape() == v.shape() && q.shape()[0] == k.shape()[0] &&
              q.shape()[3] == k.shape()[3],
          "attention: expected q (B, T, H, D), and k and v (B, S, H', D); got q {}, k {}, v {}", q,
          k, v);
  const DType dtype = q.dtype();
  require(is_floating(dtype) && dtype == k.dtype() && dtype == v.dtype(),
          "attention: q, k and v must have one floating type; got {}, {} and {}", name_of(dtype),
          name_of(k.dtype()), name_of(v.dtype()));
  const AttentionShape s = checked_shape("attention", o, dtype,
                                         {.batch = q.size(0),
                                          .queries = q.size(1),
                                          .keys = k.size(1),
                                          .heads = q.size(2),
                                          .kv_heads = k.size(2),
                                          .width = q.size(3)});
  if (is_half(dtype)) {
    return to(attention(to(q, DType::f32), to(k, DType::f32), to(v, DType::f32), widened(o)),
              dtype);
  }
  Tensor y = Tensor::empty(q.shape(), dtype), stats;
  dispatch_compute(dtype, "attention", [&]<class T>() {
    run_forward(s, o, q.data<T>(), k.data<T>(), v.data<T>(), y, stats);
  });
  record(attention_op, y, {q, k, v, o.bias, o.mask}, {q, k, v, o.bias, o.mask, y, stats}, s);
  return y;
}

Tensor attention_stack(const Tensor& qkv, std::int64_t heads, const AttentionOptions& o) {
  require(heads >= 1, "attention_stack: heads must be at least 1; got {}", heads);
  require(
      qkv.defined() && qkv.rank() == 4 && qkv.size(0) == 3 && qkv.size(3) % heads == 0,
      "attention_stack: expected q, k and v as (3, B, T, C), with C a multiple of the {} heads; "
      "got {}",
      heads, qkv);
  require(
      is_floating(qkv.dtype()),
      "attention_stack: q, k and v must have a floating type; got {}; convert with to(x, dtype)",
      name_of(qkv.dtype()));
  const DType dtype = qkv.dtype();
  const AttentionShape s = checked_shape("attention_stack", o, dtype,
                                         {.batch = qkv.size(1),
                                          .queries = qkv.size(2),
                                          .keys = qkv.size(2),
                                          .heads = heads,
                                          .kv_heads = heads,
                                          .width = qkv.size(3) / heads});
  if (is_half(dtype)) return to(attention_stack(to(qkv, DType::f32), heads, widened(o)), dtype);
  Tensor y = Tensor::empty(qkv.shape().sub(1, 4), dtype), stats;
  dispatch_compute(dtype, "attention_stack", [&]<class T>() {
    const std::int64_t part = qkv.numel() / 3;
    const T* q = qkv.data<T>();
    run_forward(s, o, q, q + part, q + 2 * part, y, stats);
  });
  record(attention_stack_op, y, {qkv, o.bias, o.mask}, {qkv, o.bias, o.mask, y, stats}, s);
  return y;
}

}  // namespace norma
