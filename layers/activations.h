// Activations: one list. Each is a small structure with the formula in its sentence.
#pragma once

#include <array>

#include "core/config/config.h"
#include "core/ops/activations.h"
#include "core/ops/arithmetic.h"
#include "core/ops/math.h"
#include "layers/layer.h"

namespace norma {

constexpr auto config_names(GeluForm) { return std::to_array<std::string_view>({"none", "tanh"}); }

struct ReluConfig {
  static constexpr const char* type = "relu";
  static constexpr const char* doc = "max(x, 0).";
  static constexpr const char* source = "Nair & Hinton 2010";
  static config::Fields fields() { return {}; }
  [[nodiscard]] Tensor apply(const Tensor& x) const { return relu(x); }
};

struct LeakyReluConfig {
  static constexpr const char* type = "leaky_relu";
  static constexpr const char* doc = "x for x > 0, else slope x.";
  static constexpr const char* source = "Maas et al. 2013; torch.nn.LeakyReLU";
  double slope = 0.01;
  static config::Fields fields() {
    return {config::field("slope", &LeakyReluConfig::slope, "Slope below 0.")};
  }
  [[nodiscard]] Tensor apply(const Tensor& x) const { return leaky_relu(x, slope); }
};

struct GeluConfig {
  static constexpr const char* type = "gelu";
  static constexpr const char* doc = "x Phi(x), with erf (none) or its tanh approximation (tanh).";
  static constexpr const char* source = "Hendrycks & Gimpel 2016, arXiv 1606.08415";
  GeluForm approximate = GeluForm::erf;
  static config::Fields fields() {
    return {config::field("approximate", &GeluConfig::approximate,
                          "none: through erf; tanh: the approximation of GPT-2.")};
  }
  [[nodiscard]] Tensor apply(const Tensor& x) const { return gelu(x, approximate); }
};

struct SiluConfig {
  static constexpr const char* type = "silu";
  static constexpr const char* doc = "x sigmoid(x).";
  static constexpr const char* source = "Elfwing et al. 2017; torch.nn.SiLU";
  static config::Fields fields() { return {}; }
  [[nodiscard]] Tensor apply(const Tensor& x) const { return silu(x); }
};

struct TanhConfig {
  static constexpr const char* type = "tanh";
  static constexpr const char* doc = "tanh(x).";
  static constexpr const char* source = "torch.nn.Tanh";
  static config::Fields fields() { return {}; }
  [[nodiscard]] Tensor apply(const Tensor& x) const { return tanh(x); }
};

struct SigmoidConfig {
  static constexpr const char* type = "sigmoid";
  static constexpr const char* doc = "1 / (1 + exp(-x)).";
  static constexpr const char* source = "torch.nn.Sigmoid";
  static config::Fields fields() { return {}; }
  [[nodiscard]] Tensor apply(const Tensor& x) const { return sigmoid(x); }
};

struct SoftplusConfig {
  static constexpr const char* type = "softplus";
  static constexpr const char* doc = "log(1 + exp(x)).";
  static constexpr const char* source = "torch.nn.Softplus";
  static config::Fields fields() { return {}; }
  [[nodiscard]] Tensor apply(const Tensor& x) const { return softplus(x); }
};

struct EluConfig {
  static constexpr const char* type = "elu";
  static constexpr const char* doc = "x for x > 0, else alpha (exp(x) - 1).";
  static constexpr const char* source = "Clevert et al. 2015; torch.nn.ELU";
  double alpha = 1;
  static config::Fields fields() {
    return {config::field("alpha", &EluConfig::alpha, "Minus the limit at -infinity.")};
  }
  [[nodiscard]] Tensor apply(const Tensor& x) const { return elu(x, alpha); }
};

using ActivationConfigs = config::TypeList<ReluConfig, LeakyReluConfig, GeluConfig, SiluConfig,
                                           TanhConfig, SigmoidConfig, SoftplusConfig, EluConfig>;

// Any of them as a layer.
template <class Config>
class ActivationLayer final : public Layer {
 public:
  ActivationLayer(const Config& config, const Scope& scope, const Signature& in)
      : Layer(scope, in), config_(config) {
    require_numbers(Config::type, in);
  }
  [[nodiscard]] Tensor forward(const Tensor& x, const Forward&) override {
    return config_.apply(x);
  }

 private:
  Config config_;
};

}  // namespace norma
