// Cells of recurrent networks: what follows the products with the weights, elementwise.
#pragma once

#include <cstdint>

#include "core/kernels/activations.h"

namespace norma::kernels {

// With s = sigmoid, in every row of the batch:
//   lstm         y = s(f) state + s(i) tanh(g)             gates = i, f, g, o behind each other
//   lstm_output  y = s(o) tanh(state)                      likewise
//   gru          y = (1 - z) n + z state, r = s(x_r + h_r), z = s(x_z + h_z), n = tanh(x_n + r h_n)
//                                                          gates = x_r, x_z, x_n; from_h = h_r, ...
enum class Cell { lstm, lstm_output, gru };

// Gates of a cell in one row of `gates`.
[[nodiscard]] constexpr std::int64_t gates_of(Cell cell) { return cell == Cell::gru ? 3 : 4; }

template <class T>
struct CellTask {
  std::int64_t rows = 0, hidden = 0;
  const T* gates = nullptr;   // (rows, gates_of(cell) hidden)
  const T* from_h = nullptr;  // of a gru: (rows, 3 hidden)
  const T* state = nullptr;   // (rows, hidden)
  T* y = nullptr;             // (rows, hidden), of the forward pass
  // Of the backward pass. Gates that y does not depend on get 0.
  const T* dy = nullptr;
  Output<T> dgates, dfrom_h, dstate;
};

// y, or where dy is given the gradients that are wanted.
void run_cell(Cell cell, const CellTask<float>& task);
void run_cell(Cell cell, const CellTask<double>& task);

}  // namespace norma::kernels
