#include "layers/no_norm.h"

namespace norma {

LayerPtr NoNormConfig::build(const Scope& scope, const Signature& in) const {
  return std::make_unique<NoNorm>(scope, in);
}

}  // namespace norma
