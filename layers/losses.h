// Losses: one list. Each is a mean over all elements, or over the targets that count.
//
// To add one: a structure here with its formula, its name in LossConfig, and a row in
// tests/layers/losses_test.cpp.
#pragma once

#include <cstdint>

#include "core/config/config.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/losses.h"

namespace norma {

struct CrossEntropyConfig {
  static constexpr const char* type = "cross_entropy";
  static constexpr const char* doc =
      "-log softmax(x)[target], the mean over the targets that are not ignored.";
  static constexpr const char* source = "torch.nn.CrossEntropyLoss; z_loss: PaLM, arXiv 2204.02311";
  double label_smoothing = 0;
  double z_loss = 0;
  std::int64_t ignore = -100;
  static config::Fields fields();
  // Shapes: logits (..., C), targets (...) of i64; a scalar comes out.
  [[nodiscard]] Tensor apply(const Tensor& x, const Tensor& target) const {
    return cross_entropy(x, target, options());
  }
  [[nodiscard]] CrossEntropyOptions options() const {
    return {.label_smoothing = label_smoothing, .z_loss = z_loss, .ignore = ignore};
  }
};

struct MseConfig {
  static constexpr const char* type = "mse";
  static constexpr const char* doc = "(x - target)^2.";
  static constexpr const char* source = "torch.nn.MSELoss";
  static config::Fields fields() { return {}; }
  [[nodiscard]] Tensor apply(const Tensor& x, const Tensor& target) const {
    return mse_loss(x, target);
  }
};

struct MaeConfig {
  static constexpr const char* type = "mae";
  static constexpr const char* doc = "|x - target|.";
  static constexpr const char* source = "torch.nn.L1Loss";
  static config::Fields fields() { return {}; }
  [[nodiscard]] Tensor apply(const Tensor& x, const Tensor& target) const {
    return mae_loss(x, target);
  }
};

struct HuberConfig {
  static constexpr const char* type = "huber";
  static constexpr const char* doc =
      "d^2 / 2 for d = |x - target| below delta, else delta (d - delta / 2).";
  static constexpr const char* source = "torch.nn.HuberLoss";
  double delta = 1;
  static config::Fields fields();
  [[nodiscard]] Tensor apply(const Tensor& x, const Tensor& target) const {
    return huber_loss(x, target, {.delta = delta});
  }
};

struct BceConfig {
  static constexpr const char* type = "bce";
  static constexpr const char* doc = "Binary cross-entropy of logits: softplus(x) - x target.";
  static constexpr const char* source = "torch.nn.BCEWithLogitsLoss";
  static config::Fields fields() { return {}; }
  [[nodiscard]] Tensor apply(const Tensor& x, const Tensor& target) const {
    return bce_loss(x, target);
  }
};

struct LossConfig
    : config::OneOf<CrossEntropyConfig, MseConfig, MaeConfig, HuberConfig, BceConfig> {
  static constexpr const char* family = "loss";
  static constexpr const char* family_doc = "What a run makes small.";
  using OneOf::OneOf;

  // The loss of a batch, a scalar; of f32 where x is of a half type. Shapes: as the member says; x
  // and target alike where it says nothing. Throws Error for shapes that do not fit.
  [[nodiscard]] Tensor apply(const Tensor& x, const Tensor& target) const;
  // How many terms the mean is over: the targets that are not ignored, or the elements of x. Known
  // before the forward pass, so that parts of a batch can be weighted right.
  [[nodiscard]] std::int64_t count(const Shape& x, const Tensor& target) const;
  // The sum of those terms, with a gradient.
  [[nodiscard]] Tensor sum(const Tensor& x, const Tensor& target) const;

 private:
  struct Operands {
    Tensor outputs, targets;
  };
  [[nodiscard]] static Operands operands(const Tensor& x, const Tensor& target);
};

}  // namespace norma
