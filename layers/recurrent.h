// LSTM and GRU: layers that read a sequence step by step, and carry a state along.
#pragma once

#include "layers/norms.h"

namespace norma {

struct RecurrentOptions {
  std::int64_t hidden = 0;
  std::optional<NormConfig> norm;
  static config::Fields fields();
};

struct LstmConfig : RecurrentOptions {
  static constexpr const char* type = "lstm";
  static constexpr const char* doc = "Long short-term memory: a state behind gates, step by step.";
  static constexpr const char* source = "Hochreiter & Schmidhuber 1997; torch.nn.LSTM";
  [[nodiscard]] LayerPtr build(const Scope& scope, const Signature& in) const;
};

struct GruConfig : RecurrentOptions {
  static constexpr const char* type = "gru";
  static constexpr const char* doc = "Gated recurrent unit: a state behind gates, step by step.";
  static constexpr const char* source = "Cho et al. 2014, arXiv 1406.1078; torch.nn.GRU";
  [[nodiscard]] LayerPtr build(const Scope& scope, const Signature& in) const;
};

// For t = 0, 1, ...: h_t = cell(N_ih(x_t W_ih^T) + b_ih, N_hh(h_{t-1} W_hh^T) + b_hh, h_{t-1}),
// from h = 0; the result is all h_t. The products with x are one for all steps. The norms N are
// there where `norm` is given (Ba et al. 2016, arXiv 1607.06450); each is over all gates together.
// Shapes: x (B, T, C), result (B, T, hidden); weight_ih (gates hidden, C), weight_hh (gates hidden,
// hidden), bias_ih and bias_hh (gates hidden), the gates in PyTorch's order: lstm i f g o, gru r z
// n. Names: those, and ih_norm, hh_norm, cell_norm (of an lstm's memory, where it goes out). Masks:
// where pass.mask is 0 the state stays as it is, and so does the output. Cache: the state of the
// last step; a pass goes on from it. Initialisation: the fan-in of all is `hidden`, as in PyTorch.
class RecurrentLayer : public Layer {
 public:
  [[nodiscard]] Tensor forward(const Tensor& x, const Forward& pass) override;

 protected:
  struct State {
    Tensor h;  // (B, hidden)
    Tensor c;  // the memory of an lstm, likewise
  };
  // `name` is the layer's type, for errors.
  RecurrentLayer(const char* name, std::int64_t gates, const RecurrentOptions& options,
                 const Scope& scope, const Signature& in);
  [[nodiscard]] virtual State step(const Tensor& from_x, const Tensor& from_h, const State& before,
                                   const Forward& pass) const = 0;
  // A norm of values of that shape (steps, features), where the options have one.
  [[nodiscard]] LayerPtr make_norm(const char* name, const Shape& shape,
                                   const RecurrentOptions& options, const Scope& scope);
  // The norm of a step's values (B, features); x itself without one.
  [[nodiscard]] static Tensor normed(Layer* norm, const Tensor& x, const Forward& pass);

 private:
  [[nodiscard]] State start(const Tensor& x, const Forward& pass) const;
  // The new state where the mask (B, 1) is 1, the old one elsewhere.
  [[nodiscard]] static State held(const State& next, const State& before, const Tensor& mask);

  const char* name_;
  std::int64_t hidden_;
  Tensor weight_ih_, weight_hh_, bias_ih_, bias_hh_;
  LayerPtr ih_norm_, hh_norm_;
};

}  // namespace norma
