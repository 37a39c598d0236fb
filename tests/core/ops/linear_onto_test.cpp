// linear_onto: the sum with the residual, made in the tiles of the product.
#include <vector>

#include "core/ops/arithmetic.h"
#include "core/ops/linear.h"
#include "core/parallel.h"
#include "tests/support/op_case.h"

namespace norma {
namespace {

struct Passed {
  Tensor y;
  std::vector<Tensor> grads;
};

// y and its gradients, of the fused sum or of the two ops.
Passed pass(bool fused, const std::vector<Tensor>& inputs, bool bias) {
  std::vector<Tensor> x;
  for (const Tensor& t : inputs) x.push_back(t.clone().set_requires_grad());
  if (!bias) x.pop_back();
  const Tensor b = bias ? x[3] : Tensor();
  const Tensor y = fused ? linear_onto(x[0], x[1], x[2], b) : x[0] + linear(x[1], x[2], b);
  const Tensor u = test::random_tensor(y.shape(), 9, y.dtype());
  return {y.detach(), grad(std::span(&y, 1), x, {}, std::span(&u, 1))};
}

TEST_CASE("linear_onto has the bits and the gradients of residual + linear", "[threads]") {
  // (rows, in, out): odd sizes, no rows, several tiles, and one that OpenBLAS computes.
  const std::vector<std::vector<std::int64_t>> sizes = {
      {1, 1, 1}, {7, 5, 33}, {0, 3, 4}, {300, 64, 70}, {517, 130, 259}, {1024, 1024, 1024}};
  const int before = num_threads();
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    for (const auto& s : sizes) {
      if (s[0] == 1024 && dtype != DType::f32) continue;
      const std::vector<Tensor> inputs = {
          test::random_tensor({s[0], s[2]}, 1, dtype), test::random_tensor({s[0], s[1]}, 2, dtype),
          test::random_tensor({s[2], s[1]}, 3, dtype), test::random_tensor({s[2]}, 4, dtype)};
      for (const bool bias : {true, false}) {
        for (const int threads : {1, 2, 3}) {
          INFO(name_of(dtype) << " " << s[0] << " x " << s[1] << " x " << s[2] << ", bias " << bias
                              << ", " << threads << " threads");
          set_num_threads(threads);
          const Passed fused = pass(true, inputs, bias), two = pass(false, inputs, bias);
          CHECK(test::same_bits(fused.y, two.y));
          REQUIRE(fused.grads.size() == two.grads.size());
          for (std::size_t i = 0; i < two.grads.size(); ++i) {
            CHECK(test::same_bits(fused.grads[i], two.grads[i]));
          }
        }
      }
    }
  }
  set_num_threads(before);
}

TEST_CASE("linear_onto has gradients of any order") {
  const auto f = [](const std::vector<Tensor>& x) {
    return linear_onto(x[0] * x[0], x[1], x[2], x[3]);
  };
  const std::vector<Tensor> inputs = {test::random_tensor({3, 4}, 1),
                                      test::random_tensor({3, 5}, 2),
                                      test::random_tensor({4, 5}, 3), test::random_tensor({4}, 4)};
  CHECK(test::check_gradient(f, inputs) == "");
  CHECK(test::check_second_gradient(f, inputs) == "");
}

TEST_CASE("linear_onto leaves its residual alone, and takes one that is its input too") {
  const Tensor x = test::random_tensor({6, 8}, 1, DType::f32).set_requires_grad();
  const Tensor before = x.detach().clone();
  const Tensor w = test::random_tensor({8, 8}, 2, DType::f32);
  const Tensor y = linear_onto(x, x, w);
  CHECK(test::same_bits(x.detach(), before));
  CHECK(test::same_bits(y.detach(), x.detach() + linear(x.detach(), w)));
}

TEST_CASE("linear_onto refuses a residual that is not as the result") {
  const Tensor x = Tensor::zeros({2, 3}), w = Tensor::zeros({4, 3});
  NORMA_CHECK_ERROR(linear_onto(Tensor::zeros({2, 3}), x, w),
                    "linear_onto: the residual must be f32 (2, 4), as the result; got f32 (2, 3)");
  NORMA_CHECK_ERROR(linear_onto(Tensor::zeros({4}), x, w), "must be f32 (2, 4)");
  NORMA_CHECK_ERROR(linear_onto(Tensor::zeros({2, 4}, DType::f64), x, w), "got f64 (2, 4)");
  NORMA_CHECK_ERROR(linear_onto(Tensor::zeros({2, 4}), x, Tensor::zeros({4, 2})),
                    "linear_onto: weight");
}

}  // namespace
}  // namespace norma
