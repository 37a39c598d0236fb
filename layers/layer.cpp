#include "layers/layer.h"

#include "core/ops/arithmetic.h"

namespace norma {

Tensor Layer::forward_onto(const Tensor& residual, const Tensor& x, const Forward& pass) {
  const Tensor y = forward(x, pass);
  require(residual.shape() == y.shape(), "forward_onto: expected a residual {}; got {}", y.shape(),
          residual.shape());
  return residual + y;
}

void require_numbers(const char* layer, const Signature& in) {
  require(in.vocab == 0,
          "{}: expected numbers; got ids (of a vocabulary of {}); put an embedding before it",
          layer, in.vocab);
}

void require_features(const char* layer, const Signature& in) {
  require_numbers(layer, in);
  require(in.shape.rank() >= 1, "{}: expected an input with at least one axis", layer);
}

}  // namespace norma
