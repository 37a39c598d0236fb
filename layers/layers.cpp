#include "layers/layers.h"

#include "core/ops/arithmetic.h"
#include "layers/recomputed.h"

namespace norma {
namespace {

class Residual final : public Layer {
 public:
  Residual(std::unique_ptr<Layers> body, std::unique_ptr<Layers> shortcut, const Scope& scope)
      : Layer(scope, body->output()), body_(std::move(body)), shortcut_(std::move(shortcut)) {
    child("body", *body_);
    if (shortcut_) child("shortcut", *shortcut_);
  }
  Tensor forward(const Tensor& x, const Forward& pass) override {
    return (shortcut_ ? shortcut_->forward(x, pass) : x) + body_->forward(x, pass);
  }

  [[nodiscard]] bool is_block() const override { return true; }

 private:
  std::unique_ptr<Layers> body_, shortcut_;
};

template <class Config>
concept Buildable = requires(const Config& c, const Scope& s, const Signature& in) {
  { c.build(s, in) } -> std::same_as<LayerPtr>;
};

}  // namespace

config::Fields ResidualConfig::fields() {
  using namespace config;
  return {
      field("body", &ResidualConfig::body, "The layers of the branch.", not_empty(), required()),
      field("shortcut", &ResidualConfig::shortcut, "Layers beside the branch; empty: x itself.")};
}

LayerPtr ResidualConfig::build(const Scope& scope, const Signature& in) const {
  auto branch = std::make_unique<Layers>(body, scope.child("body"), in);
  std::unique_ptr<Layers> beside;
  if (!shortcut.empty()) beside = std::make_unique<Layers>(shortcut, scope.child("shortcut"), in);
  const Shape& there = beside ? beside->output().shape : in.shape;
  require(branch->output().shape == there,
          "residual: the body gives shape {} and the shortcut {}; they must be equal",
          branch->output().shape, there);
  return std::make_unique<Residual>(std::move(branch), std::move(beside), scope);
}

LayerPtr LayerConfig::build(const Scope& scope, const Signature& in) const {
  return visit([&]<class Config>(const Config& config) -> LayerPtr {
    if constexpr (Buildable<Config>) {
      return config.build(scope, in);
    } else {
      return std::make_unique<ActivationLayer<Config>>(config, scope, in);
    }
  });
}

Layers::Built Layers::build_all(const std::vector<LayerConfig>& layers, const Scope& scope,
                                const Signature& in) {
  Built built{{}, in};
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const Scope inner = scope.child(std::to_string(i));
    try {
      built.layers.push_back(layers[i].build(inner, built.output));
    } catch (const Error& e) {
      throw Error::format("layer {}: {}", inner.path(), e.what());
    }
    built.output = built.layers.back()->output();
  }
  return built;
}

Layers::Layers(const std::vector<LayerConfig>& layers, const Scope& scope, const Signature& in)
    : Layers(build_all(layers, scope, in), scope) {}

Layers::Layers(Built built, const Scope& scope)
    : Layer(scope, std::move(built.output)), layers_(std::move(built.layers)) {
  for (std::size_t i = 0; i < layers_.size(); ++i) child(std::to_string(i), *layers_[i]);
}

Tensor Layers::forward(const Tensor& x, const Forward& pass) {
  Tensor y = x;
  const bool observed = pass.observer && path().empty();  // the model itself, not a part of it
  if (observed && is_floating(x.dtype())) pass.observer->stream("input", x);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    Layer& layer = *layers_[i];
    y = layer.is_block() ? recomputed(layer, y, pass) : layer.forward(y, pass);
    if (observed) pass.observer->stream(fmt::format("layers.{}", i), y);
  }
  return y;
}

}  // namespace norma
