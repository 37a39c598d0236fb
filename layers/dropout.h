// Dropout: zeroes elements at random while training.
#pragma once

#include "core/config/config.h"
#include "layers/layer.h"

namespace norma {

struct DropoutConfig {
  static constexpr const char* type = "dropout";
  static constexpr const char* doc = "Zeroes a share p of the elements, and scales the others.";
  static constexpr const char* source = "Srivastava et al. 2014; torch.nn.Dropout";
  double p = 0.5;
  static config::Fields fields();
  [[nodiscard]] LayerPtr build(const Scope& scope, const Signature& in) const;
};

// In training y = x m / (1 - p) with m = 0 at a share p of the elements, drawn from the pass's
// stream; in evaluation y = x, and nothing is drawn.
class Dropout final : public Layer {
 public:
  Dropout(const Scope& scope, Signature in, double p);
  [[nodiscard]] Tensor forward(const Tensor& x, const Forward& pass) override;
  // False where forward() gives x itself.
  [[nodiscard]] bool drops(const Forward& pass) const;

 private:
  double p_;
};

}  // namespace norma
