// Feed-forward: the second branch of a transformer's block, plain or gated.
#pragma once

#include "layers/activations.h"
#include "layers/linear.h"

namespace norma {

struct SwigluConfig {
  static constexpr const char* type = "swiglu";
  static constexpr const char* doc = "Gated: silu(gate) up.";
  static constexpr const char* source = "Shazeer 2020, arXiv 2002.05202";
  static config::Fields fields() { return {}; }
  [[nodiscard]] Tensor apply(const Tensor& gate, const Tensor& up) const {
    return swiglu(gate, up);
  }
};

struct GegluConfig {
  static constexpr const char* type = "geglu";
  static constexpr const char* doc = "Gated: gelu(gate) up.";
  static constexpr const char* source = "Shazeer 2020, arXiv 2002.05202";
  GeluForm approximate = GeluForm::erf;
  static config::Fields fields() {
    return {config::field("approximate", &GegluConfig::approximate,
                          "none: through erf; tanh: the approximation (Gemma).")};
  }
  [[nodiscard]] Tensor apply(const Tensor& gate, const Tensor& up) const {
    return geglu(gate, up, approximate);
  }
};

struct RegluConfig {
  static constexpr const char* type = "reglu";
  static constexpr const char* doc = "Gated: relu(gate) up.";
  static constexpr const char* source = "Shazeer 2020, arXiv 2002.05202";
  static config::Fields fields() { return {}; }
  [[nodiscard]] Tensor apply(const Tensor& gate, const Tensor& up) const { return reglu(gate, up); }
};

using GatedConfigs = config::TypeList<SwigluConfig, GegluConfig, RegluConfig>;

struct FeedForwardActivation : config::OneOf<ActivationConfigs, GatedConfigs> {
  static constexpr const char* family = "feed_forward_activation";
  static constexpr const char* family_doc = "Between the two products of a feed-forward.";
  using OneOf::OneOf;
};

// Plain: down(activation(up(x))). Gated: down(activation(gate(x), up(x))).
// Shapes: x (..., C); up.weight and gate.weight (hidden, C), down.weight (C, hidden).
class FeedForward final : public Layer {
 public:
  struct Options {
    std::int64_t hidden = 0;
    FeedForwardActivation activation = GeluConfig{};
    bool bias = true;
  };
  FeedForward(const Options& options, const Scope& scope, const Signature& in);
  [[nodiscard]] Tensor forward(const Tensor& x, const Forward& pass) override;
  [[nodiscard]] Tensor forward_onto(const Tensor& residual, const Tensor& x,
                                    const Forward& pass) override;

 private:
  [[nodiscard]] Tensor hidden(const Tensor& x, const Forward& pass);  // (..., hidden), activated

  FeedForwardActivation activation_;
  Linear up_;
  std::unique_ptr<Linear> gate_;
  Linear down_;
};

}  // namespace norma
