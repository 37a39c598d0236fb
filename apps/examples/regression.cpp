// A regression with the library alone: tensors, gradients, and a step by hand.
//
// y = 3 x - 2 with a little noise; gradient descent on the mean square finds 3 and -2.
#include <fmt/format.h>

#include <cmath>

#include "core/autograd.h"
#include "core/ops/arithmetic.h"
#include "core/ops/losses.h"
#include "core/random.h"

int main() {
  using namespace norma;
  const std::int64_t n = 200;
  Tensor x = Tensor::empty(Shape{n}), noise = Tensor::empty(Shape{n});
  fill_uniform(x, -1, 1, random_key(0, "x"));
  fill_normal(noise, 0, 0.1, random_key(0, "noise"));
  const Tensor y = x * 3.0 - 2.0 + noise;

  Tensor slope = Tensor::zeros(Shape{}).set_requires_grad();
  Tensor offset = Tensor::zeros(Shape{}).set_requires_grad();
  for (int step = 0; step < 200; ++step) {
    const Tensor loss = mse_loss(x * slope + offset, y);
    backward(loss);
    const NoGrad off;  // the update itself is not differentiated
    for (Tensor parameter : {slope, offset}) {
      parameter.copy_(parameter - parameter.grad() * 0.5);
      parameter.clear_grad();
    }
  }
  fmt::print("slope {:.3f}, offset {:.3f}\n", slope.item(), offset.item());
  return std::abs(slope.item() - 3) < 0.05 && std::abs(offset.item() + 2) < 0.05 ? 0 : 1;
}
