// The gradient of sum(x * x) is 2 x.
#include "core/autograd.h"
#include "core/ops/arithmetic.h"
#include "core/ops/reduce.h"

int main() {
  norma::Tensor x = norma::Tensor::from({3}, {1, 2, 3});
  x.set_requires_grad();
  sum(x * x).backward();
  return x.grad().to_vector() == std::vector<double>{2, 4, 6} ? 0 : 1;
}
