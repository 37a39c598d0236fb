// Rules of initialisation: one family, a row a rule. Scope::make applies them.
//
//   rule            matrices                             biases               embeddings  head
//   torch           U(+-1/sqrt(fan_in))                  U(+-1/sqrt(fan_in))  N(0, 1)     torch
//   gpt2            N(0, 0.02), residual ones /sqrt(2L)  0                    N(0, 0.02)  gpt2
//   normal          N(0, std)                            0                    N(0, std)   normal
//   xavier_uniform  U(+-gain sqrt(6/(fan_in+fan_out)))   0                    N(0, 1)     torch
//   xavier_normal   N(0, gain sqrt(2/(fan_in+fan_out)))  0                    N(0, 1)     torch
//   he_uniform      U(+-sqrt(6/fan_in))                  0                    N(0, 1)     torch
//   he_normal       N(0, sqrt(2/fan_in))                 0                    N(0, 1)     torch
//   orthogonal      orthonormal rows or columns          0                    N(0, 1)     torch
//
// A matrix (out, in) has fan_in = in and fan_out = out; a convolution (out, in/groups, kernel...)
// has fan_in = in/groups * kernel and fan_out = out/groups * kernel.
#pragma once

#include "core/config/config.h"
#include "core/random.h"
#include "core/tensor.h"

namespace norma {

struct Fan {
  std::int64_t in = 1, out = 1;
};

struct TorchInit {
  static constexpr const char* type = "torch";
  static constexpr const char* doc = "PyTorch's defaults: U(+-1/sqrt(fan_in)), embeddings N(0, 1)";
  static constexpr const char* source = "PyTorch nn.Linear, nn.Embedding";
  static config::Fields fields() { return {}; }
  static void fill(Tensor& w, Fan fan, RandomKey key);
};

struct Gpt2Init {
  static constexpr const char* type = "gpt2";
  static constexpr const char* doc = "N(0, 0.02), the residual projections divided by sqrt(2L)";
  static constexpr const char* source = "Radford et al. 2019";
  static constexpr double std = 0.02;
  static config::Fields fields() { return {}; }
  static void fill(Tensor& w, Fan fan, RandomKey key);
};

struct NormalInit {
  static constexpr const char* type = "normal";
  static constexpr const char* doc = "N(0, std)";
  static constexpr const char* source = "OLMo 2 uses std 0.02";
  double std = 0.02;
  static config::Fields fields() {
    return {config::field("std", &NormalInit::std, "Standard deviation.", config::at_least(0))};
  }
  void fill(Tensor& w, Fan fan, RandomKey key) const;
};

struct XavierUniformInit {
  static constexpr const char* type = "xavier_uniform";
  static constexpr const char* doc = "U(+-gain sqrt(6/(fan_in + fan_out)))";
  static constexpr const char* source = "Glorot & Bengio 2010";
  double gain = 1;
  static config::Fields fields() {
    return {config::field("gain", &XavierUniformInit::gain, "Factor on all values.",
                          config::at_least(0))};
  }
  void fill(Tensor& w, Fan fan, RandomKey key) const;
};

struct XavierNormalInit {
  static constexpr const char* type = "xavier_normal";
  static constexpr const char* doc = "N(0, gain sqrt(2/(fan_in + fan_out)))";
  static constexpr const char* source = "Glorot & Bengio 2010";
  double gain = 1;
  static config::Fields fields() {
    return {config::field("gain", &XavierNormalInit::gain, "Factor on all values.",
                          config::at_least(0))};
  }
  void fill(Tensor& w, Fan fan, RandomKey key) const;
};

struct HeUniformInit {
  static constexpr const char* type = "he_uniform";
  static constexpr const char* doc = "U(+-sqrt(6/fan_in))";
  static constexpr const char* source = "He et al. 2015";
  static config::Fields fields() { return {}; }
  static void fill(Tensor& w, Fan fan, RandomKey key);
};

struct HeNormalInit {
  static constexpr const char* type = "he_normal";
  static constexpr const char* doc = "N(0, sqrt(2/fan_in))";
  static constexpr const char* source = "He et al. 2015";
  static config::Fields fields() { return {}; }
  static void fill(Tensor& w, Fan fan, RandomKey key);
};

struct OrthogonalInit {
  static constexpr const char* type = "orthogonal";
  static constexpr const char* doc = "a random matrix with orthonormal rows (or columns)";
  static constexpr const char* source = "Saxe et al. 2014";
  static config::Fields fields() { return {}; }
  static void fill(Tensor& w, Fan fan, RandomKey key);
};

struct InitConfig : config::OneOf<TorchInit, Gpt2Init, NormalInit, XavierUniformInit,
                                  XavierNormalInit, HeUniformInit, HeNormalInit, OrthogonalInit> {
  static constexpr const char* family = "init";
  static constexpr const char* family_doc = "How parameters start.";
  using OneOf::OneOf;
};

}  // namespace norma
