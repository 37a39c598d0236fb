#include "models/sequential.h"

#include "core/ops/cast.h"

namespace norma {
namespace {

// Layers that compute in the type of their parameters, whatever the data come in.
class Sequential final : public Layers {
 public:
  Sequential(const SequentialConfig& config, const Scope& scope, const Signature& in)
      : Layers(config.layers, scope, in) {
    const std::vector<Tensor> all = parameters();
    if (!all.empty()) parameter_ = all.front();
  }

  Tensor forward(const Tensor& x, const Forward& pass) override {
    const bool convert = parameter_.defined() && is_floating(x.dtype());
    return Layers::forward(convert ? to(x, parameter_.dtype()) : x, pass);
  }

 private:
  Tensor parameter_;  // any of them: all have one type
};

}  // namespace

config::Fields SequentialConfig::fields() {
  using namespace config;
  return {field("layers", &SequentialConfig::layers, "The layers, from input to output.",
                not_empty(), required()),
          field("init", &SequentialConfig::init, "How all matrices start.")};
}

ModelPtr SequentialConfig::build(std::uint64_t seed, const Signature& in, DType dtype) const {
  return std::make_unique<Sequential>(*this, Scope(seed, init, dtype), in);
}

}  // namespace norma
