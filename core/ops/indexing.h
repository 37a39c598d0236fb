// Reading and adding by index. Indices are i64; one outside of the range is an Error that names its
// position, its value and the limit, before anything is written.
#pragma once

#include <cstdint>
#include <optional>

#include "core/autograd.h"

namespace norma {

// y[..., k, ...] = x[..., index[..., k, ...], ...] along `axis`. `index` has x's shape but for that
// axis. The gradient is scatter_add.
[[nodiscard]] Tensor gather(const Tensor& x, const Tensor& index, int axis);

// x with source[..., k, ...] added at [..., index[..., k, ...], ...] along `axis`; `index` and
// `source` have one shape, which is x's but for that axis. Repeated indices add up, in the order of
// k, at any number of threads. The gradient of `source` is gather. Half types are added in f32.
[[nodiscard]] Tensor scatter_add(const Tensor& x, const Tensor& index, const Tensor& source,
                                 int axis);

struct EmbeddingOptions {
  // The row with this id gets no gradient. It is read like any other.
  std::optional<std::int64_t> padding_id = std::nullopt;
};

// Rows of weight (rows, width) by ids of any shape: shape of ids + (width).
// The gradient goes straight into the weight's: rows that were read n times get the sum of n
// gradients, taken in f64 in the order of the ids, rounded once.
[[nodiscard]] Tensor embedding(const Tensor& weight, const Tensor& ids,
                               EmbeddingOptions options = {});

// x[ids] along the leading axis: shape of ids + the rest of x's shape.
[[nodiscard]] Tensor index_select(const Tensor& x, const Tensor& ids);

// Throws Error naming `op` unless all of `ids` (i64) lie in 0..limit-1, or are `except`.
void check_ids(const char* op, const Tensor& ids, std::int64_t limit,
               std::optional<std::int64_t> except = std::nullopt);

}  // namespace norma
