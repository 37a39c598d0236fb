// Sharpness: how strongly the loss is curved, by exact Hessian-vector products.
//
// Gradient descent with rate lr is stable along an eigenvector of the Hessian H while
// lr < 2 / lambda. Adam moves by P^-1 m with P = diag(sqrt(v) + eps), and sees P^-1/2 H P^-1/2;
// with beta1 = 0.9 it is stable while lr < (2 + 2 beta1) / ((1 - beta1) lambda) = 38 / lambda.
// Source: Cohen et al. 2022, Adaptive gradient methods at the edge of stability, arXiv 2207.14484.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/random.h"
#include "core/tensor.h"

namespace norma {

// The largest and the smallest eigenvalue of a symmetric matrix.
struct Extremes {
  double largest = 0;
  double smallest = 0;
  int products = 0;        // with the matrix
  bool converged = false;  // both stood still to a thousandth
  // The one of larger magnitude, which is what power iteration finds.
  [[nodiscard]] double by_magnitude() const { return largest >= -smallest ? largest : smallest; }
};

// Lanczos with full reorthogonalisation, from a random start. `product` gives A v for a v of `size`
// numbers. Stops when both values stand still, and after `most` products. Both values are NaN if a
// product is not finite.
[[nodiscard]] Extremes lanczos(
    const std::function<std::vector<double>(const std::vector<double>&)>& product,
    std::int64_t size, int most, RandomKey key);

// Products with the Hessian of a loss with respect to some of its leaves, whose numbers lie behind
// one another in their order.
class Hessian {
 public:
  // `loss` is a scalar with a graph. Throws Error as grad() does.
  Hessian(const Tensor& loss, std::vector<Tensor> parameters);

  [[nodiscard]] std::int64_t size() const { return size_; }
  // H v = d(g . v) / dp.
  [[nodiscard]] std::vector<double> product(const std::vector<double>& v) const;
  // The gradient g.
  [[nodiscard]] std::vector<double> gradient() const;

 private:
  std::vector<Tensor> parameters_;
  std::vector<Tensor> gradients_;  // with a graph; undefined where the loss does not depend
  std::int64_t size_ = 0;
};

}  // namespace norma
