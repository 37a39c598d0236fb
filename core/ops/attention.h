// Scaled dot-product attention, fused.
//
// Note [Masks]. There is one meaning of a mask everywhere in this library: 1 counts, 0 does not.
// A mask is u8. Of shape (batch, keys) it speaks of keys: no query looks at a key with 0. Of shape
// (batch or 1, queries, keys) it speaks of pairs: query t does not look at a key s with 0. What is
// added to the logits is a `bias` of the floating type, where 0 changes nothing and -inf hides a
// key. A query that sees no key at all gives 0, with gradient 0.
#pragma once

#include <cstdint>
#include <optional>

#include "core/autograd.h"
#include "core/random.h"

namespace norma {

struct AttentionOptions {
  std::optional<double> scale = {};  // of q k; 1 / sqrt(D) if absent
  double softcap = 0;                // c > 0: logits become c tanh(logit / c); 0: none
  bool causal = false;               // query i sees the keys j <= i + S - T
  std::int64_t window = 0;           // w > 0: ... the keys with |i + S - T - j| < w; 0: all
  Tensor mask = {};                  // (B, S), (B, T, S) or (1, T, S) u8, see Note [Masks]
  Tensor bias = {};                  // (H, T, S), added behind the cap; gets a gradient
  double dropout = 0;  // of the weights: each is 0 with this probability, else / (1 - p)
  RandomKey dropout_key{};
  // (H): gets the largest scale q k of a pair that counted, before cap and bias, for each head;
  // NaN where one of them is NaN.
  Tensor* largest_logit = nullptr;
};

// y[b, i, h] = sum over j of w[j] v[b, j, h'], w = softmax over j of the logits
// cap(scale q[b, i, h] . k[b, j, h']) + bias[h, i, j], h' = h / (H / H').
//
// Shapes: q (B, T, H, D), k and v (B, S, H', D), H a multiple of H'; y (B, T, H, D).
// The last query stands at the position of the last key (so T < S continues a text).
// Saves: q, k, v, bias, mask, y and two numbers a query; never the (T, S) weights.
// Numerics: running maximum; half types are computed in f32 and rounded once.
// Throws: if a shape or type does not fit, for H' that does not divide H, for dropout outside of
// [0, 1], for a softcap or window below 0.
// Source: Vaswani et al. 2017, arXiv 1706.03762; tiles as in Dao 2023, arXiv 2307.08691; grouped
// heads: Ainslie et al. 2023, arXiv 2305.13245.
[[nodiscard]] Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v,
                               const AttentionOptions& options = {});

// attention() of queries, keys and values that lie one behind the other, as linear_stack() gives
// them: y = attention(qkv[0], qkv[1], qkv[2]), each seen as (B, T, heads, C / heads).
//
// Shapes: qkv (3, B, T, C), y (B, T, C); mask (B, T), (B, T, T) or (1, T, T); bias (heads, T, T).
// Saves: qkv, bias, mask, y and two numbers a query. Where nobody else sees qkv, its gradient takes
// its memory.
// Numerics: the bits of attention().
// Throws: if qkv has another shape or no floating type, if the heads do not divide C; otherwise as
// attention().
[[nodiscard]] Tensor attention_stack(const Tensor& qkv, std::int64_t heads,
                                     const AttentionOptions& options = {});

}  // namespace norma
