#include "core/ops/alias.h"

#include "core/autograd.h"

namespace norma {

extern const OpInfo alias_op;
const OpInfo alias_op{"alias", [](BackwardContext& ctx) { ctx.set_grad(0, ctx.grad_output()); }};

Tensor alias(const Tensor& x) {
  Tensor y = x.detach();
  record(alias_op, y, {x}, {});
  return y;
}

}  // namespace norma
