#include "core/ops/compare.h"

#include <limits>

#include "tests/core/ops/pointwise_reference.h"

namespace norma::test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
using Values = std::vector<double>;

TEST_CASE("comparisons give 1 and 0 in every element type") {
  for (DType dtype :
       {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i32, DType::i64, DType::u8}) {
    INFO(name_of(dtype));
    const Tensor a = Tensor::from(Shape{3}, {1, 2, 3}, dtype);
    const Tensor b = Tensor::from(Shape{3}, {2, 2, 2}, dtype);
    CHECK(eq(a, b).dtype() == DType::u8);
    CHECK(eq(a, b).to_vector() == Values{0, 1, 0});
    CHECK(ne(a, b).to_vector() == Values{1, 0, 1});
    CHECK(lt(a, b).to_vector() == Values{1, 0, 0});
    CHECK(le(a, b).to_vector() == Values{1, 1, 0});
    CHECK(gt(a, b).to_vector() == Values{0, 0, 1});
    CHECK(ge(a, b).to_vector() == Values{0, 1, 1});
    CHECK(eq(a, 2.0).to_vector() == Values{0, 1, 0});
    CHECK(ne(a, 2.0).to_vector() == Values{1, 0, 1});
    CHECK(lt(a, 2.0).to_vector() == Values{1, 0, 0});
    CHECK(le(a, 2.0).to_vector() == Values{1, 1, 0});
    CHECK(gt(a, 2.0).to_vector() == Values{0, 0, 1});
    CHECK(ge(a, 2.0).to_vector() == Values{0, 1, 1});
  }
}

TEST_CASE("comparisons broadcast") {
  for (const auto& shapes : binary_shapes()) {
    const Tensor a = random_tensor(shapes[0], 1);
    const Tensor b = random_tensor(shapes[1], 2);
    const Tensor y = lt(a, b);
    INFO(y.shape().to_string());
    const auto expected =
        binary_reference([](double u, double v) { return u < v ? 1.0 : 0.0; })({a, b});
    CHECK(y.to_vector() == expected);
  }
}

TEST_CASE("a comparison with NaN is false, but ne is true") {
  const Tensor x = Tensor::from(Shape{2}, {kNan, 1.0});
  CHECK(eq(x, x).to_vector() == Values{0, 1});
  CHECK(ne(x, x).to_vector() == Values{1, 0});
  CHECK(lt(x, 2.0).to_vector() == Values{0, 1});
  CHECK(ge(x, 0.0).to_vector() == Values{0, 1});
}

TEST_CASE("comparisons record nothing, and name what does not fit") {
  Tensor x = Tensor::zeros(Shape{2, 3});
  x.set_requires_grad();
  CHECK_FALSE(gt(x, x).requires_grad());
  NORMA_CHECK_ERROR(eq(x, Tensor::zeros(Shape{2})), "eq");
  NORMA_CHECK_ERROR(lt(x, Tensor::zeros(Shape{2, 3}, DType::i64)),
                    "lt: expected operands of one type; got f32 and i64; convert one with");
}

}  // namespace
}  // namespace norma::test
