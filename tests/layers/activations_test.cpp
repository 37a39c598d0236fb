// Every activation of the family, through one set of checks. Values from PyTorch are in
// tests/cases.
#include "layers/activations.h"

#include <cmath>

#include "tests/support/op_case.h"

namespace norma::test {
namespace {

using Activations = config::OneOf<ActivationConfigs>::Members;

TEMPLATE_LIST_TEST_CASE("an activation keeps the shape, and its gradient is right", "[activations]",
                        Activations) {
  const ActivationLayer<TestType> layer(TestType{}, Scope(0, TorchInit{}, DType::f64),
                                        {.shape = Shape{4, 3}});
  const auto f = [](const std::vector<Tensor>& in) { return TestType{}.apply(in[0]); };
  for (const Shape& shape : {Shape{3, 4, 3}, Shape{1}, Shape{257}}) {
    const Tensor x = random_tensor(shape, 1);
    CHECK(f({x}).shape() == shape);
    CHECK(check_gradient(f, {x}) == "");
    CHECK(check_second_gradient(f, {x}) == "");
  }
  CHECK(layer.output().shape == Shape{4, 3});
}

TEMPLATE_LIST_TEST_CASE("an activation is finite far out, and tells a NaN", "[activations]",
                        Activations) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor x = Tensor::from({4}, {-1e4, -30, 30, 1e4}, dtype).set_requires_grad();
    const Tensor y = TestType{}.apply(x);
    backward(y, Tensor::ones({4}, dtype));
    for (const Tensor& t : {y.detach(), x.grad()}) {
      for (const double v : t.to_vector()) CHECK(std::isfinite(v));
    }
    CHECK(std::isnan(TestType{}.apply(Tensor::from({1}, {std::nan("")}, dtype)).item()));
  }
}

}  // namespace
}  // namespace norma::test
