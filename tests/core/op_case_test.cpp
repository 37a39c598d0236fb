// The checks themselves must be able to fail.
#include "tests/support/op_case.h"

#include "core/instructions.h"
#include "core/ops/alias.h"
#include "core/ops/arithmetic.h"
#include "core/ops/list.h"

namespace norma {

extern const OpInfo scaled_gradient_op;
// y = x * x with a gradient that is wrong by a factor of 1.001.
const OpInfo scaled_gradient_op{"scaled_gradient", [](BackwardContext& ctx) {
                                  const Tensor x = ctx.saved(0);
                                  ctx.set_grad(0,
                                               mul(ctx.grad_output(), mul_scalar(x, 2.0 * 1.001)));
                                }};

extern const OpInfo wrong_axis_op;
// y = x + b over the last axis, with b's gradient summed over the wrong axis.
const OpInfo wrong_axis_op{"wrong_axis", [](BackwardContext& ctx) {
                             const std::int64_t n = ctx.input_shape(1)[0];
                             const auto dy = ctx.grad_output().to_vector();
                             std::vector<double> sums(static_cast<std::size_t>(n));
                             for (std::int64_t i = 0; i < n * n; ++i) {
                               sums[static_cast<std::size_t>(i / n)] +=
                                   dy[static_cast<std::size_t>(i)];
                             }
                             ctx.set_grad(0, ctx.grad_output());
                             ctx.set_grad(1, Tensor::from(Shape{n}, sums, DType::f64));
                           }};

namespace test {
namespace {

Tensor with_op(const OpInfo& op, Tensor y, std::initializer_list<Tensor> inputs) {
  record(op, y, inputs, inputs);
  return y;
}

TEST_CASE("check_gradient finds a factor of 1.001") {
  const auto wrong = [](const std::vector<Tensor>& x) {
    return with_op(scaled_gradient_op, mul(x[0].detach(), x[0].detach()), {x[0]});
  };
  const auto right = [](const std::vector<Tensor>& x) { return mul(x[0], x[0]); };
  for (const Shape& shape : {Shape{3}, Shape{9, 11}}) {
    const std::vector<Tensor> x{random_tensor(shape, 3)};
    CHECK(check_gradient(wrong, x) != "");
    CHECK(check_gradient(right, x) == "");
    CHECK(check_second_gradient(right, x) == "");
  }
}

TEST_CASE("check_gradient finds a sum over the wrong axis") {
  const auto wrong = [](const std::vector<Tensor>& x) {
    return with_op(wrong_axis_op, add(x[0].detach(), x[1].detach()), {x[0], x[1]});
  };
  const std::vector<Tensor> x{random_tensor(Shape{4, 4}, 3), random_tensor(Shape{4}, 4)};
  CHECK(check_gradient(wrong, x) != "");
}

TEST_CASE("check_instruction_sets finds a set that gives something else") {
  const std::vector<Tensor> x{random_tensor(Shape{4, 4}, 3)};
  const auto wrong = [](const std::vector<Tensor>& in) {
    return mul_scalar(in[0], instruction_set() == instruction_sets().front() ? 1.0 : 1.001);
  };
  const auto right = [](const std::vector<Tensor>& in) { return mul_scalar(in[0], 3.0); };
  CHECK(check_instruction_sets(right, x, DType::f32, 1e-6) == "");
  CHECK((check_instruction_sets(wrong, x, DType::f32, 1e-6) != "") ==
        (instruction_sets().size() > 1));
  CHECK(instruction_set() == instruction_sets().front());
}

TEST_CASE("compare finds a difference in the last digits") {
  CHECK(compare({1.0, 2.0}, {1.0, 2.0 + 1e-9}, 1e-8) == "");
  CHECK(compare({1.0, 2.0}, {1.0, 2.0 + 1e-6}, 1e-8) != "");
  CHECK(compare({1.0}, {1.0, 2.0}, 1) != "");
}

TEST_CASE("every op has a row of tests") {
  for (const OpInfo* op : all_ops()) {
    INFO("the op " << op->name << " needs a NORMA_OP_CASE in tests/core/ops");
    CHECK(has_op_case(op->name));
  }
}

NORMA_OP_CASE(alias, identity) {
  return {.run = [](const std::vector<Tensor>& x) { return alias(x[0]); },
          .reference = [](const std::vector<Tensor>& x) { return x[0].to_vector(); },
          .samples = {{Shape{}}, {Shape{3, 5}}, {Shape{0, 2}}}};
}

}  // namespace
}  // namespace test
}  // namespace norma
