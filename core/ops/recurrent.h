// The cells of recurrent networks: what follows the products with the weights, for one time step.
#pragma once

#include "core/autograd.h"

namespace norma {

// The memory of an LSTM: sigmoid(f) c + sigmoid(i) tanh(g).
// Shapes: gates (B, 4 H) with i, f, g, o behind each other; c and the result (B, H).
// Saves: gates, c. Half types are computed in f32 and rounded once. Throws: if a shape or type does
// not fit. Source: Hochreiter & Schmidhuber 1997, with Gers et al. 2000's forget gate;
// torch.nn.LSTM.
[[nodiscard]] Tensor lstm_cell(const Tensor& gates, const Tensor& c);

// The output of an LSTM: sigmoid(o) tanh(m), m being the new memory, or a norm of it.
// Shapes: gates (B, 4 H) as above; m and the result (B, H). Saves, numerics, throws: as above.
[[nodiscard]] Tensor lstm_output(const Tensor& gates, const Tensor& m);

// (1 - z) n + z h with r = sigmoid(x_r + h_r), z = sigmoid(x_z + h_z), n = tanh(x_n + r h_n).
// Shapes: from_x and from_h (B, 3 H) with r, z, n behind each other; h and the result (B, H).
// Saves: its inputs. Numerics, throws: as above. Source: Cho et al. 2014, arXiv 1406.1078, in the
// form of torch.nn.GRU, where r acts behind the product.
[[nodiscard]] Tensor gru_cell(const Tensor& from_x, const Tensor& from_h, const Tensor& h);

}  // namespace norma
