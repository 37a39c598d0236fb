// Reductions over axes. `axes` may be negative; the empty list means all. Half types are computed
// in f32 and rounded once.
#pragma once

#include "core/autograd.h"
#include "core/ops/axes.h"

namespace norma {

// The sum over the axes; 0 over nothing. Numerics: f32 in f64 after at most 32 terms.
[[nodiscard]] Tensor sum(const Tensor& x, const Axes& axes = {}, Keep keep = Keep::no);
// The mean. Throws Error over no elements.
[[nodiscard]] Tensor mean(const Tensor& x, const Axes& axes = {}, Keep keep = Keep::no);

// The largest (smallest) element; NaN if there is one. Equal ones share the gradient in equal
// parts, so that the parts add up to what came in (as torch.amax). Throws Error over no elements.
[[nodiscard]] Tensor max(const Tensor& x, const Axes& axes = {}, Keep keep = Keep::no);
[[nodiscard]] Tensor min(const Tensor& x, const Axes& axes = {}, Keep keep = Keep::no);
// The position of the largest element along one axis, the first of equal ones; NaN counts as the
// largest. i64, not recorded.
[[nodiscard]] Tensor argmax(const Tensor& x, int axis = -1, Keep keep = Keep::no);

struct VarOptions {
  int correction = 1;  // the sum of squares is divided by n - correction: 1 as torch.var, 0 biased
  Keep keep = Keep::no;
};
// The variance, in two passes in f64. Throws Error unless n > correction.
[[nodiscard]] Tensor var(const Tensor& x, const Axes& axes = {}, VarOptions options = {});
// Its root. The gradient of a constant is 0.
[[nodiscard]] Tensor deviation(const Tensor& x, const Axes& axes = {}, VarOptions options = {});

// The root of the sum of squares, summed in f64. The gradient at 0 is 0.
[[nodiscard]] Tensor norm(const Tensor& x, const Axes& axes = {}, Keep keep = Keep::no);

// log(sum(exp(x))), with the maximum taken off first; -inf where all are -inf, with gradient 0.
[[nodiscard]] Tensor logsumexp(const Tensor& x, const Axes& axes = {}, Keep keep = Keep::no);

}  // namespace norma
