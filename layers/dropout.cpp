#include "layers/dropout.h"

#include "core/ops/dropout.h"

namespace norma {

config::Fields DropoutConfig::fields() {
  using namespace config;
  return {field("p", &DropoutConfig::p, "Share that is zeroed.", at_least(0), at_most(1))};
}

LayerPtr DropoutConfig::build(const Scope& scope, const Signature& in) const {
  require_numbers("dropout", in);
  return std::make_unique<Dropout>(scope, in, p);
}

Dropout::Dropout(const Scope& scope, Signature in, double p) : Layer(scope, std::move(in)), p_(p) {}

Tensor Dropout::forward(const Tensor& x, const Forward& pass) {
  return drops(pass) ? dropout(x, p_, pass.key(path())) : x;
}

bool Dropout::drops(const Forward& pass) const { return training() && pass.dropout && p_ != 0; }

}  // namespace norma
