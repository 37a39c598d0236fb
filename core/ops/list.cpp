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
  X(where)
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
