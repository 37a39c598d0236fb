#include "core/ops/list.h"

namespace norma {

// One word an op: declared here, defined beside its forward and backward.
// clang-format off
#define NORMA_OPS(X) \
  X(alias) \
  X(add) \
  X(add_scalar) \
  X(broadcast_to) \
  X(cast) \
  X(div) \
  X(maximum) \
  X(minimum) \
  X(mul) \
  X(mul_scalar) \
  X(neg) \
  X(sub) \
  X(sum_to) \
  X(where) \
  X(abs) \
  X(cos) \
  X(dropout) \
  X(elu) \
  X(erf) \
  X(exp) \
  X(geglu) \
  X(gelu) \
  X(leaky_relu) \
  X(log) \
  X(pow) \
  X(pow_tensor) \
  X(reglu) \
  X(relu) \
  X(rsqrt) \
  X(sigmoid) \
  X(silu) \
  X(sin) \
  X(softplus) \
  X(sqrt) \
  X(square) \
  X(swiglu) \
  X(tanh)
// clang-format on

#define NORMA_DECLARE(name) extern const OpInfo name##_op;
NORMA_OPS(NORMA_DECLARE)
#undef NORMA_DECLARE

std::span<const OpInfo* const> all_ops() {
#define NORMA_ENTRY(name) &name##_op,
  static const OpInfo* const ops[] = {NORMA_OPS(NORMA_ENTRY)};
#undef NORMA_ENTRY
  return ops;
}

}  // namespace norma
