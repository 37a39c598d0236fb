#include "core/ops/attention.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
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

template <class T>
const T* pointer(const Tensor& t) {
  return t.defined() ? t.data<T>() : nullptr;
}

void attention_backward(BackwardContext& ctx) {
  const AttentionShape& s = ctx.attrs<AttentionShape>();
  const Tensor& dy = ctx.grad_output();
  const Tensor q = ctx.saved(0), k = ctx.saved(1), v = ctx.saved(2), bias = ctx.saved(3);
  const Tensor mask = ctx.saved(4), y = ctx.saved(5), stats = ctx.saved(6);
  dispatch_compute(dy.dtype(), "attention", [&]<class T>() {
    kernels::AttentionGradients<T> out;
    gradient_destination(ctx, 0, out.dq, out.accumulate_dq);
    gradient_destination(ctx, 1, out.dk, out.accumulate_dk);
    gradient_destination(ctx, 2, out.dv, out.accumulate_dv);
    gradient_destination(ctx, 3, out.dbias, out.accumulate_dbias);
    kernels::attention_backward(
        s, {q.data<T>(), k.data<T>(), v.data<T>(), pointer<T>(bias), pointer<std::uint8_t>(mask)},
        y.data<T>(), stats.data<T>(), dy.data<T>(), out);
  });
}

void check(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o) {
  require(q.defined() && k.defined() && v.defined() && q.shape().rank() == 4 &&
              k.shape().rank() == 4 && k.shape() == v.shape() && q.shape()[0] == k.shape()[0] &&
              q.shape()[3] == k.shape()[3],
          "attention: expected q (B, T, H, D), and k and v (B, S, H', D); got q {}, k {}, v {}", q,
          k, v);
  require(is_floating(q.dtype()) && q.dtype() == k.dtype() && q.dtype() == v.dtype(),
          "attention: q, k and v must have one floating type; got {}, {} and {}",
          name_of(q.dtype()), name_of(k.dtype()), name_of(v.dtype()));
  const std::int64_t heads = q.shape()[2], kv_heads = k.shape()[2];
  require(heads >= 1 && kv_heads >= 1 && heads % kv_heads == 0,
          "attention: the {} kv heads must divide the {} heads", kv_heads, heads);
  const std::int64_t batch = q.shape()[0], queries = q.shape()[1], keys = k.shape()[1];
  const Shape of_keys{batch, keys}, of_pairs{batch, queries, keys}, shared{1, queries, keys};
  const Shape bias{heads, queries, keys};
  require(!o.mask.defined() || (o.mask.dtype() == DType::u8 &&
                                (o.mask.shape() == of_keys || o.mask.shape() == of_pairs ||
                                 o.mask.shape() == shared)),
          "attention: mask must have shape {}, {} or {} and type u8 (1: the key counts); got {} of "
          "{}; what is added to the logits goes into bias",
          of_keys, of_pairs, shared, o.mask, o.mask.defined() ? name_of(o.mask.dtype()) : "none");
  require(!o.bias.defined() || (o.bias.dtype() == q.dtype() && o.bias.shape() == bias),
          "attention: bias must have shape {} and the type of q; got {} of {}", bias, o.bias,
          o.bias.defined() ? name_of(o.bias.dtype()) : "none");
  require(o.dropout >= 0 && o.dropout <= 1, "attention: dropout must lie in [0, 1]; got {}",
          o.dropout);
  require(o.softcap >= 0 && std::isfinite(o.softcap),
          "attention: softcap must be at least 0; got {}", o.softcap);
  require(o.window >= 0, "attention: window must be at least 0; got {}", o.window);
}

}  // namespace

const OpInfo attention_op{"attention", attention_backward, attention_composed};

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o) {
  check(q, k, v, o);
  if (is_half(q.dtype())) {
    AttentionOptions wide = o;
    if (o.bias.defined()) wide.bias = to(o.bias, DType::f32);
    return to(attention(to(q, DType::f32), to(k, DType::f32), to(v, DType::f32), wide), q.dtype());
  }
  AttentionShape s;
  s.batch = q.shape()[0];
  s.queries = q.shape()[1];
  s.heads = q.shape()[2];
  s.width = q.shape()[3];
  s.keys = k.shape()[1];
  s.kv_heads = k.shape()[2];
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
    const bool shared = pairs && o.mask.shape()[0] == 1;
    s.mask_sample_stride = shared ? 0 : s.keys * (pairs ? s.queries : 1);
  }
  Tensor y = Tensor::empty(q.shape(), q.dtype());
  Tensor stats = Tensor::empty({s.batch, s.heads, s.queries, 2}, q.dtype());
  dispatch_compute(q.dtype(), "attention", [&]<class T>() {
    std::vector<T> largest;
    if (o.largest_logit) largest.resize(static_cast<std::size_t>(s.batch * s.heads));
    kernels::attention_forward(
        s,
        {q.data<T>(), k.data<T>(), v.data<T>(), pointer<T>(o.bias), pointer<std::uint8_t>(o.mask)},
        y.mutable_data<T>(), stats.mutable_data<T>(), o.largest_logit ? largest.data() : nullptr);
    if (!o.largest_logit) return;
    Tensor most = Tensor::full({s.heads}, -std::numeric_limits<double>::infinity(), q.dtype());
    T* m = most.mutable_data<T>();
    for (std::size_t i = 0; i < largest.size(); ++i) {
      T& of_head = m[static_cast<std::int64_t>(i) % s.heads];
      if (std::isnan(largest[i]) || largest[i] > of_head) of_head = largest[i];
    }
    *o.largest_logit = most;
  });
  record(attention_op, y, {q, k, v, o.bias, o.mask}, {q, k, v, o.bias, o.mask, y, stats}, s);
  return y;
}

}  // namespace norma
