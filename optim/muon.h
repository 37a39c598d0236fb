// Muon.
#pragma once

#include <array>

#include "core/config/config.h"
#include "optim/optimizer.h"

namespace norma {

// The AdamW for what is not a hidden matrix. Its rate follows the schedule in proportion, and its
// decay acts where the optimizer's would.
struct MuonRestConfig {
  double lr = 1e-3;
  double weight_decay = 0.01;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  static config::Fields fields();
};

// For a hidden matrix (rows, cols), a convolution's weight being (out, in * height * width):
//   m <- m + (1 - momentum)(g - m);  u = g + momentum (m - g), or m without nesterov;
//   X = newton_schulz(u);  w <- (1 - lr weight_decay) w - lr sqrt(max(1, rows / cols)) X.
// Hidden are the parameters with two axes or more whose names match no glob of `not_hidden`:
// embeddings and heads. The others follow AdamW (`rest`). The decay is decoupled in both; eps is
// added to the norm that newton_schulz divides by. Source: Keller Jordan's Muon.
struct MuonConfig : OptimizerOptions {
  static constexpr const char* type = "muon";
  static constexpr const char* doc = "Momentum made orthogonal, for hidden matrices.";
  static constexpr const char* source = "Keller Jordan 2024";
  double momentum = 0.95;
  bool nesterov = true;
  std::vector<std::string> not_hidden = {
      "tokens.*",     "*.tokens.*", "positions.*",  "*.positions.*", "relative.*",
      "*.relative.*", "embedding*", "*.embedding*", "head.*",        "*.head.*"};
  MuonRestConfig rest;
  MuonConfig() { lr = 0.02; }
  static config::Fields fields();
};

[[nodiscard]] OptimizerPtr make_optimizer(const MuonConfig& config, FlatParametersPtr parameters);

// Brings the singular values of a matrix near 1: X = x / (|x| + 1e-7), transposed if rows > cols,
// then five times A = X X^T, X <- a X + (b A + c A^2) X with (a, b, c) = (3.4445, -4.7750, 2.0315);
// transposed back. In the type of x. The zero matrix stays zero.
[[nodiscard]] Tensor newton_schulz(const Tensor& x);

}  // namespace norma
