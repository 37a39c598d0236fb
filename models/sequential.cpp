#include "models/sequential.h"

namespace norma {

config::Fields SequentialConfig::fields() {
  using namespace config;
  return {field("layers", &SequentialConfig::layers, "The layers, from input to output.",
                not_empty(), required()),
          field("init", &SequentialConfig::init, "How all matrices start.")};
}

ModelPtr SequentialConfig::build(std::uint64_t seed, const Signature& in, DType dtype) const {
  return std::make_unique<Layers>(layers, Scope(seed, init, dtype), in);
}

}  // namespace norma
