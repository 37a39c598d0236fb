// Cross-entropy of logits against class numbers.
#pragma once

#include <cstdint>
#include <optional>

#include "core/autograd.h"

namespace norma {

struct CrossEntropyOptions {
  double label_smoothing = 0.0;                       // s below, in [0, 1]
  double z_loss = 0.0;                                // c below, at least 0
  std::optional<std::int64_t> ignore = std::nullopt;  // a target that does not count; any integer
};

// The mean over the targets t that count of
//   (1 - s) (z - x[t]) + s (z - mean(x)) + c z^2,   z = log(sum(exp(x))),
// which is torch.nn.functional.cross_entropy for c = 0, with the z-loss of PaLM (Chowdhery et al.
// 2022, section 5). Where no target counts the loss is 0, with gradient 0.
//
// Shapes: logits (..., C), targets (...) of i64; a scalar comes out.
// Saves: logits, targets, and two numbers a row.
// Numerics: the maximum is taken off first, a row's rest runs in f64, and so does the sum of rows.
// A logit of -inf is a class that cannot be; a row of nothing else gives +inf, with gradient 0.
// Throws: for shapes that do not fit, and for a target outside of 0..C-1 that is not `ignore`.
[[nodiscard]] Tensor cross_entropy(const Tensor& logits, const Tensor& targets,
                                   const CrossEntropyOptions& options = {});

// The sum in the place of the mean, and how many targets counted: to be added up over parts of a
// batch and divided once.
struct CrossEntropySum {
  Tensor sum;
  std::int64_t count = 0;
};
[[nodiscard]] CrossEntropySum cross_entropy_sum(const Tensor& logits, const Tensor& targets,
                                                const CrossEntropyOptions& options = {});

}  // namespace norma
