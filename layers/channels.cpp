#include "layers/channels.h"

#include "core/ops/movement.h"

namespace norma {

std::int64_t channels_of(const char* layer, const Signature& in) {
  require_numbers(layer, in);
  require(in.shape.rank() >= 1, "{}: expected an input with channels; got a single number a sample",
          layer);
  return in.shape[in.features_last ? -1 : 0];
}

Tensor tokens_as_samples(const Tensor& x) {
  return reshape(x, Shape{x.numel() / std::max<std::int64_t>(1, x.size(-1)), x.size(-1)});
}

}  // namespace norma
