#include "core/ops/recurrent.h"

#include "core/kernels/recurrent.h"
#include "core/ops/arithmetic.h"
#include "core/ops/cast.h"
#include "core/ops/gradient_destination.h"
#include "core/ops/math.h"
#include "core/ops/movement.h"

namespace norma {

extern const OpInfo lstm_cell_op, lstm_output_op, gru_cell_op;

namespace {

using kernels::Cell;
using Inputs = std::span<const Tensor>;

// Inputs: gates, state, from_h (of a gru alone).
template <class T>
kernels::CellTask<T> task_of(const Tensor& gates, const Tensor& state, const Tensor& from_h) {
  kernels::CellTask<T> task;
  task.rows = state.size(0);
  task.hidden = state.size(1);
  task.gates = gates.data<T>();
  task.state = state.data<T>();
  if (from_h.defined()) task.from_h = from_h.data<T>();
  return task;
}

template <Cell cell>
void cell_backward(BackwardContext& ctx) {
  const Tensor gates = ctx.saved(0), state = ctx.saved(1);
  const Tensor from_h = cell == Cell::gru ? ctx.saved(2) : Tensor();
  const Tensor& dy = ctx.grad_output();
  dispatch_compute(dy.dtype(), "cell", [&]<class T>() {
    kernels::CellTask<T> task = task_of<T>(gates, state, from_h);
    task.dy = dy.data<T>();
    gradient_destination(ctx, 0, task.dgates.data, task.dgates.accumulate);
    gradient_destination(ctx, 1, task.dstate.data, task.dstate.accumulate);
    if (cell == Cell::gru) {
      gradient_destination(ctx, 2, task.dfrom_h.data, task.dfrom_h.accumulate);
    }
    kernels::run_cell(cell, task);
  });
}

Tensor gate(const Tensor& gates, int index, const Tensor& state) {
  const std::int64_t hidden = state.size(1);
  return slice(gates, 1, index * hidden, (index + 1) * hidden);
}

Tensor lstm_composed(Inputs in, const void*) {
  const auto of = [&](int index) { return gate(in[0], index, in[1]); };
  return sigmoid(of(1)) * in[1] + sigmoid(of(0)) * tanh(of(2));
}

Tensor lstm_output_composed(Inputs in, const void*) {
  return sigmoid(gate(in[0], 3, in[1])) * tanh(in[1]);
}

Tensor gru_composed(Inputs in, const void*) {
  const auto x = [&](int index) { return gate(in[0], index, in[1]); };
  const auto h = [&](int index) { return gate(in[2], index, in[1]); };
  const Tensor r = sigmoid(x(0) + h(0)), z = sigmoid(x(1) + h(1)), n = tanh(x(2) + r * h(2));
  return n + z * (in[1] - n);
}

Tensor run(const OpInfo& op, Cell cell, const Tensor& gates, const Tensor& state,
           const Tensor& from_h) {
  require(state.defined() && state.rank() == 2 && is_floating(state.dtype()),
          "{}: expected a floating state (B, H); got {}", op.name, state);
  const Shape expected{state.size(0), kernels::gates_of(cell) * state.size(1)};
  for (const Tensor* t : {&gates, &from_h}) {
    if (t == &from_h && cell != Cell::gru) continue;
    require(t->defined() && t->shape() == expected && t->dtype() == state.dtype(),
            "{}: expected gates {} of {}, {} for each of the state's {}; got {} of {}", op.name,
            expected, name_of(state.dtype()), kernels::gates_of(cell), state.shape(), *t,
            t->defined() ? name_of(t->dtype()) : "none");
  }
  if (is_half(state.dtype())) {
    const Tensor wide = from_h.defined() ? to(from_h, DType::f32) : from_h;
    return to(run(op, cell, to(gates, DType::f32), to(state, DType::f32), wide), state.dtype());
  }
  Tensor y = Tensor::empty(state.shape(), state.dtype());
  dispatch_compute(state.dtype(), op.name, [&]<class T>() {
    kernels::CellTask<T> task = task_of<T>(gates, state, from_h);
    task.y = y.mutable_data<T>();
    kernels::run_cell(cell, task);
  });
  if (cell == Cell::gru) {
    record(op, y, {gates, state, from_h}, {gates, state, from_h});
  } else {
    record(op, y, {gates, state}, {gates, state});
  }
  return y;
}

}  // namespace

const OpInfo lstm_cell_op{"lstm_cell", cell_backward<Cell::lstm>, lstm_composed};
const OpInfo lstm_output_op{"lstm_output", cell_backward<Cell::lstm_output>, lstm_output_composed};
const OpInfo gru_cell_op{"gru_cell", cell_backward<Cell::gru>, gru_composed};

Tensor lstm_cell(const Tensor& gates, const Tensor& c) {
  return run(lstm_cell_op, Cell::lstm, gates, c, {});
}
Tensor lstm_output(const Tensor& gates, const Tensor& m) {
  return run(lstm_output_op, Cell::lstm_output, gates, m, {});
}
Tensor gru_cell(const Tensor& from_x, const Tensor& from_h, const Tensor& h) {
  return run(gru_cell_op, Cell::gru, from_x, h, from_h);
}

}  // namespace norma
