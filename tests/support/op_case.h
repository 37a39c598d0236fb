// One row an op: what it computes, at which shapes, and how it fails. See Note [A row an op].
//
// Note [A row an op]. NORMA_OP_CASE(gelu, erf) { return {...}; } defines a test that checks, at
// every listed set of shapes:
//   - the op in f64 and f32 against `reference`, a naive computation in f64;
//   - its gradient against central differences in f64, first and second order;
//   - its gradient in f32 against the one in f64;
//   - a fused op against its `composed` form, value and gradient;
//   - the same bits at 1, 2, 3 and 8 threads;
//   - value and gradient with every instruction set of this machine against those with the best;
// and every error text. A test at the end fails for an op of all_ops() that has no row.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/autograd.h"
#include "core/tensor.h"
#include "tests/support/catch.h"

namespace norma::test {

struct OpError {
  std::function<void()> call;
  std::string text;  // must stand in the message
};

struct OpCase {
  // The op on floating inputs, all of one type (ids and other constants are captured).
  std::function<Tensor(const std::vector<Tensor>& inputs)> run = {};
  // The same, computed naively from f64 inputs; row-major.
  std::function<std::vector<double>(const std::vector<Tensor>& inputs)> reference = {};
  // The shapes of the inputs, a list a sample: odd sizes, sizes around a vector's width, empty
  // ones.
  std::vector<std::vector<Shape>> samples = {};
  // Inputs are uniform over [low, high].
  double low = -1.0, high = 1.0;
  double tolerance_f64 = 1e-11;
  double tolerance_f32 = 2e-6;
  bool second_order = true;
  std::vector<OpError> errors = {};
};

void check_op(const std::string& op, const OpCase& row);
bool register_op_case(const std::string& op);
[[nodiscard]] bool has_op_case(const std::string& op);

using Function = std::function<Tensor(const std::vector<Tensor>&)>;

// Compares the gradient of f at `inputs` (f64) with central differences, in every coordinate of
// small inputs and along random directions otherwise. Returns "" or what differs.
[[nodiscard]] std::string check_gradient(const Function& f, const std::vector<Tensor>& inputs,
                                         double tolerance = 1e-6);
// Likewise for the gradient of (a random projection of) the gradient.
[[nodiscard]] std::string check_second_gradient(const Function& f,
                                                const std::vector<Tensor>& inputs,
                                                double tolerance = 1e-5);

// Compares value and gradient of f with every instruction set of this machine to those with the
// best; gradients to 20 times the tolerance. Returns "" or what differs.
[[nodiscard]] std::string check_instruction_sets(const Function& f,
                                                 const std::vector<Tensor>& inputs, DType dtype,
                                                 double tolerance);
// Takes the best instruction set again at its end.
struct BestInstructions {
  BestInstructions() = default;
  ~BestInstructions();
  BestInstructions(const BestInstructions&) = delete;
  BestInstructions& operator=(const BestInstructions&) = delete;
};

// Uniform over [low, high], a function of the seed.
[[nodiscard]] Tensor random_tensor(const Shape& shape, std::uint64_t seed, DType dtype = DType::f64,
                                   double low = -1.0, double high = 1.0);
// "" if |a - b| <= tolerance * (1 + max(|a|, |b|)) everywhere; equal infinities and NaN pass.
[[nodiscard]] std::string compare(const std::vector<double>& got,
                                  const std::vector<double>& expected, double tolerance);
[[nodiscard]] std::string compare(const Tensor& got, const Tensor& expected, double tolerance);
// True iff shape, type and every bit agree.
[[nodiscard]] bool same_bits(const Tensor& a, const Tensor& b);

}  // namespace norma::test

#define NORMA_OP_CASE(op, label)                                 \
  static ::norma::test::OpCase op_case_##op##_##label();         \
  [[maybe_unused]] static const bool registered_##op##_##label = \
      ::norma::test::register_op_case(#op);                      \
  TEST_CASE("op " #op ": " #label, "[op]") {                     \
    ::norma::test::check_op(#op, op_case_##op##_##label());      \
  }                                                              \
  static ::norma::test::OpCase op_case_##op##_##label()
