// Scaled dot-product attention, tile by tile: no (queries x keys) matrix is kept.
#pragma once

#include <cstdint>

#include "core/random.h"

namespace norma::kernels {

// Query i stands at position i + keys - queries (the last query beside the last key), key j at j.
struct AttentionShape {
  std::int64_t batch = 0, queries = 0, keys = 0;
  std::int64_t heads = 0, kv_heads = 0;  // head h reads kv head h / (heads / kv_heads)
  std::int64_t width = 0;                // of a head
  double scale = 1;
  double softcap = 0;       // c: logits become c tanh(logit / c); 0: none
  std::int64_t window = 0;  // w: only keys with |position - j| < w; 0: all
  bool causal = false;      // only keys with j <= position
  double dropout = 0;       // of the weights
  RandomKey dropout_key{};
  // From a sample's mask to the next one's, and from a query's: 0 where they share it.
  std::int64_t mask_sample_stride = 0, mask_query_stride = 0;
};

template <class T>
struct AttentionInputs {
  const T* q = nullptr;                // (batch, queries, heads, width)
  const T* k = nullptr;                // (batch, keys, kv_heads, width)
  const T* v = nullptr;                // (batch, keys, kv_heads, width)
  const T* bias = nullptr;             // (heads, queries, keys), added behind the cap, or null
  const std::uint8_t* mask = nullptr;  // 1: the key counts; rows of keys, or null
};

// l[i][j] = cap(scale * q[i] . k[j]) + bias[i][j] for the allowed keys, p = softmax over j of l,
// y[i] = sum_j dropout(p[i][j]) v[j]; 0 where no key is allowed.
// stats (batch, heads, queries, 2): the largest l of the row in units of ln 2, and 1 / sum exp.
// largest (batch, heads), may be null: the largest scale * q[i] . k[j] of the pairs whose l is
// above -inf, before cap and bias; NaN where one of them is. Numerics: running maximum over blocks
// of keys; exp as exp2() of attention_tile-inl.h (f32).
void attention_forward(const AttentionShape& shape, const AttentionInputs<float>& in, float* y,
                       float* stats, float* largest);
void attention_forward(const AttentionShape& shape, const AttentionInputs<double>& in, double* y,
                       double* stats, double* largest);

// Gradients that are null are not wanted; accumulate_*: add to what is there.
template <class T>
struct AttentionGradients {
  T* dq = nullptr;
  T* dk = nullptr;
  T* dv = nullptr;
  T* dbias = nullptr;
  bool accumulate_dq = false, accumulate_dk = false, accumulate_dv = false;
  bool accumulate_dbias = false;
};

// p is computed again from stats. With dp = dy v^T and dl = p (dp - sum_j p dp):
// dv = p^T dy, dbias = sum over the batch of dl, dq = scale dl' k, dk = scale dl'^T q,
// where dl' is dl times the derivative of the cap. sum_j p dp is dy . y. Each of dq, dk and
// dv may stand in the memory of its own input, if the inputs do not overlap and nothing is
// accumulated.
void attention_backward(const AttentionShape& shape, const AttentionInputs<float>& in,
                        const float* y, const float* stats, const float* dy,
                        const AttentionGradients<float>& out);
void attention_backward(const AttentionShape& shape, const AttentionInputs<double>& in,
                        const double* y, const double* stats, const double* dy,
                        const AttentionGradients<double>& out);

// The factor of each weight under dropout, (batch, heads, queries, keys): 0 or 1 / (1 - dropout).
// It depends on dropout_key and the index alone.
void attention_dropout(const AttentionShape& shape, double* factor);

}  // namespace norma::kernels
