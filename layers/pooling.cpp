#include "layers/pooling.h"

#include "core/ops/movement.h"

namespace norma {
namespace {

class Flatten final : public Layer {
 public:
  Flatten(const Scope& scope, const Signature& in)
      : Layer(scope, {.shape = Shape{in.shape.numel()}}) {}
  Tensor forward(const Tensor& x, const Forward&) override {
    return reshape(x, Shape{x.size(0), output().shape[0]});
  }
};

}  // namespace

LayerPtr FlattenConfig::build(const Scope& scope, const Signature& in) const {
  require_numbers("flatten", in);
  return std::make_unique<Flatten>(scope, in);
}

}  // namespace norma
