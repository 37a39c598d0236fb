#include "core/ops/recurrent.h"

#include <cmath>

#include "tests/support/op_case.h"

namespace norma::test {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// Calls f(row's gates, element) for every element of the state, in order. gates[k] is gate k.
template <class F>
std::vector<double> by_element(const Tensor& gates, const Tensor& state, F f) {
  const auto all = gates.to_vector(), old = state.to_vector();
  const std::size_t hidden = static_cast<std::size_t>(state.size(1));
  const std::size_t per_row = static_cast<std::size_t>(gates.size(1));
  std::vector<double> y;
  for (std::size_t e = 0; e < old.size(); ++e) {
    const double* row = all.data() + e / hidden * per_row + e % hidden;
    y.push_back(f([=](std::size_t k) { return row[k * hidden]; }, e, old[e]));
  }
  return y;
}

std::vector<std::vector<Shape>> samples(std::int64_t gates, bool two) {
  std::vector<std::vector<Shape>> all;
  for (const auto& [rows, hidden] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {1, 1}, {3, 5}, {2, 16}, {70, 67}, {0, 4}}) {
    all.push_back({{rows, gates * hidden}, {rows, hidden}});
    if (two) all.back().push_back({rows, gates * hidden});
  }
  return all;
}

NORMA_OP_CASE(lstm_cell, all) {
  const Tensor c = Tensor::zeros({2, 3});
  return {.run = [](const auto& in) { return lstm_cell(in[0], in[1]); },
          .reference =
              [](const auto& in) {
                return by_element(in[0], in[1], [](auto gate, std::size_t, double old) {
                  return sigmoid(gate(1)) * old + sigmoid(gate(0)) * std::tanh(gate(2));
                });
              },
          .samples = samples(4, false),
          .low = -3,
          .high = 3,
          .errors = {{[=] {
                        (void)lstm_cell(Tensor::zeros({2, 9}), c);
                      },
                      "lstm_cell: expected gates (2, 12) of f32, 4 for each of the state's (2, 3); "
                      "got (2, 9) of f32"},
                     {[=] { (void)lstm_cell(c, Tensor::zeros({3})); },
                      "lstm_cell: expected a floating state (B, H); got (3)"}}};
}

NORMA_OP_CASE(lstm_output, all) {
  return {.run = [](const auto& in) { return lstm_output(in[0], in[1]); },
          .reference =
              [](const auto& in) {
                return by_element(in[0], in[1], [](auto gate, std::size_t, double memory) {
                  return sigmoid(gate(3)) * std::tanh(memory);
                });
              },
          .samples = samples(4, false),
          .low = -3,
          .high = 3};
}

NORMA_OP_CASE(gru_cell, all) {
  return {
      .run = [](const auto& in) { return gru_cell(in[0], in[2], in[1]); },
      .reference =
          [](const auto& in) {
            std::vector<double> y;
            const auto from_h = by_element(in[2], in[1], [&](auto h, std::size_t, double) {
              y.insert(y.end(), {h(0), h(1), h(2)});
              return 0;
            });
            return by_element(in[0], in[1], [&](auto x, std::size_t e, double old) {
              const double* h = y.data() + 3 * e;
              const double r = sigmoid(x(0) + h[0]), z = sigmoid(x(1) + h[1]);
              return (1 - z) * std::tanh(x(2) + r * h[2]) + z * old;
            });
          },
      .samples = samples(3, true),
      .low = -3,
      .high = 3,
      .errors =
          {{[] {
              (void)gru_cell(Tensor::zeros({2, 9}), Tensor::zeros({2, 8}), Tensor::zeros({2, 3}));
            },
            "gru_cell: expected gates (2, 9) of f32, 3 for each of the state's (2, 3); "
            "got (2, 8) of f32"}}};
}

TEST_CASE("a saturated gate is 0 or 1, and the memory stays as it was") {
  const double inf = std::numeric_limits<double>::infinity();
  // i = 0, f = 1: an LSTM keeps its memory for ever.
  const Tensor gates = Tensor::from({1, 4}, {-inf, inf, 3, 0});
  CHECK(lstm_cell(gates, Tensor::from({1, 1}, {0.25})).to_vector() == std::vector<double>{0.25});
  // z = 1: so does a GRU.
  const Tensor x = Tensor::from({1, 3}, {0, inf, 2});
  CHECK(gru_cell(x, Tensor::zeros({1, 3}), Tensor::from({1, 1}, {0.25})).to_vector() ==
        std::vector<double>{0.25});
}

}  // namespace
}  // namespace norma::test
