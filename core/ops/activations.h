// Activation functions, plain and gated (tanh and sigmoid are in math.h).
//
// f32, f64, and half types (computed in f32, rounded once); else Error. At +-infinity each gives
// its limit, with the slope's limit as its gradient; NaN stays NaN.
#pragma once

#include "core/autograd.h"

namespace norma {

// Which GELU: the two differ by up to 4e-4.
enum class GeluForm {
  erf,   // x P(x), P the normal distribution: "none" in PyTorch's `approximate`
  tanh,  // x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
};

// max(x, 0). The gradient at 0 is 0. Saves y, no memory of its own.
[[nodiscard]] Tensor relu(const Tensor& x);
// x where x > 0, else slope x. Saves y if the slope is positive, else x.
[[nodiscard]] Tensor leaky_relu(const Tensor& x, double slope = 0.01);
// Numerics: the erf form through erfc, so that the relative error is small in the lower tail too.
// Source: Hendrycks and Gimpel 2016. Saves x.
[[nodiscard]] Tensor gelu(const Tensor& x, GeluForm form = GeluForm::erf);
// x sigmoid(x). Source: Elfwing et al. 2017. Saves x.
[[nodiscard]] Tensor silu(const Tensor& x);
// ln(1 + e^x). Saves x.
[[nodiscard]] Tensor softplus(const Tensor& x);
// x where x > 0, else alpha (e^x - 1). Source: Clevert et al. 2015. Saves x.
[[nodiscard]] Tensor elu(const Tensor& x, double alpha = 1.0);

// f(gate) up, for f of silu, gelu and relu. Saves both. Source: Shazeer 2020.
// Throws Error if the shapes or types differ.
[[nodiscard]] Tensor swiglu(const Tensor& gate, const Tensor& up);
[[nodiscard]] Tensor geglu(const Tensor& gate, const Tensor& up, GeluForm form = GeluForm::erf);
[[nodiscard]] Tensor reglu(const Tensor& gate, const Tensor& up);

}  // namespace norma
