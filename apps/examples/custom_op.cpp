// An op of one's own, with its gradient: y = x^3, dy/dx = 3 x^2.
//
// The backward is written with ops, so that it can be differentiated again, to any order.
#include <fmt/format.h>

#include "core/autograd.h"
#include "core/ops/arithmetic.h"

namespace {

using namespace norma;

const OpInfo cube_op{"cube", [](BackwardContext& ctx) {
                       const Tensor x = ctx.saved(0);
                       ctx.set_grad(0, ctx.grad_output() * (x * x * 3.0));
                     }};

Tensor cube(const Tensor& x) {
  Tensor y = Tensor::empty(x.shape());
  const float* from = x.data<float>();
  float* to = y.mutable_data<float>();
  for (std::int64_t i = 0; i < x.numel(); ++i) to[i] = from[i] * from[i] * from[i];
  record(cube_op, y, {x}, {x});
  return y;
}

}  // namespace

int main() {
  const Tensor x = Tensor::scalar(2).set_requires_grad();
  const Tensor y = cube(x);
  const Tensor first = grad(y, {x}, {.create_graph = true})[0];
  const Tensor second = grad(first, {x})[0];
  fmt::print("x = 2: x^3 = {}, derivative {}, second derivative {}\n", y.item(), first.item(),
             second.item());
  return y.item() == 8 && first.item() == 12 && second.item() == 12 ? 0 : 1;
}
