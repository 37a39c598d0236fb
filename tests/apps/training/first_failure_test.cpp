#include "apps/training/first_failure.h"

#include <fmt/format.h>

#include <limits>

#include "core/autograd.h"
#include "core/ops/activations.h"
#include "core/ops/arithmetic.h"
#include "core/ops/cast.h"
#include "core/ops/linear.h"

#include "core/ops/math.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "tests/support/catch.h"

namespace norma::test {
namespace {

constexpr float kHuge = 1e30F;

// The text of the first failure in the pass that `loss` runs.
template <class F>
std::string failure_of(const std::vector<NamedParameter>& parameters, F&& loss) {
  FirstFailure watcher(parameters);
  {
    const WatchOps scope(watcher);
    backward(loss());
  }
  CHECK(op_watcher() == nullptr);
  return watcher.failure() ? to_text(*watcher.failure()) : "";
}

TEST_CASE("the first op that is not finite, and its layer", "[training]") {
  const Tensor w = Tensor::from({2, 2}, {1, 2, 3, 4}, DType::f32).set_requires_grad();
  const Tensor v = Tensor::from({2, 2}, {1, 1, 1, 1}, DType::f32).set_requires_grad();
  const std::vector<NamedParameter> parameters{{"first.weight", w}, {"second.weight", v}};
  const auto pass = [&](double x) {
    return failure_of(parameters, [&] {
      const Tensor h = matmul(Tensor::full({2, 2}, x, DType::f32), w);
      return sum(matmul(h * h, v));
    });
  };
  CHECK(pass(1) == "");
  CHECK(pass(kHuge) == "the op mul, behind first");
  // h is (4x, 6x): 36 x^2 is below 3.4e38, and 16 x^2 + 36 x^2 above.
  CHECK(pass(2.8e18) == "the op matmul of second");
}

TEST_CASE("of an op of several layers the one that failed is named", "[training]") {
  const Tensor x = Tensor::full({2, 1}, 2, DType::f32);
  for (const int bad : {0, 1, 2, 3}) {
    std::vector<NamedParameter> parameters;
    std::vector<Tensor> weights;
    for (int i = 0; i < 3; ++i) {
      Tensor w = Tensor::full({2, 1}, i == bad ? 3e38 : 1, DType::f32).set_requires_grad();
      weights.push_back(w);
      parameters.emplace_back(fmt::format("blocks.0.attention.{}.weight", "qkv"[i]), w);
    }
    const std::string text = failure_of(parameters, [&] {
      const Tensor y = sum(linear_stack(x, weights));
      return bad == 3 ? sqrt(y * 0.0) : y;
    });
    INFO(bad);
    if (bad < 3) {
      CHECK(text == fmt::format("the op linear_stack of blocks.0.attention.{}", "qkv"[bad]));
    } else {
      CHECK(text == "backward of the op sqrt, behind blocks.0.attention");
    }
  }
}

TEST_CASE("a parameter that was not finite before is named", "[training]") {
  Tensor w = Tensor::from({2}, {1, std::numeric_limits<double>::quiet_NaN()}, DType::f32);
  w.set_requires_grad();
  CHECK(failure_of({{"layer.weight", w}}, [&] { return sum(w * 2.0); }) ==
        "the op mul_scalar of layer; layer.weight was not finite before");
}

TEST_CASE("the first backward that is not finite, and its layer", "[training]") {
  const Tensor w = Tensor::from({2}, {0, 1}, DType::f32).set_requires_grad();
  const Tensor v = Tensor::from({2}, {1, 1}, DType::f32).set_requires_grad();
  const std::vector<NamedParameter> parameters{{"first.weight", w}, {"second.weight", v}};
  // d sqrt(x) at 0 is infinite.
  CHECK(failure_of(parameters, [&] { return sum(sqrt(w) * v); }) ==
        "backward of the op sqrt of first");
  CHECK(failure_of(parameters, [&] { return sum(sqrt(w * 1.0) * v); }) ==
        "backward of the op sqrt, behind first");
}

TEST_CASE("the rounding to a half type is named with what was rounded", "[training]") {
  const Tensor w = Tensor::from({2}, {300, 300}, DType::f16).set_requires_grad();
  CHECK(failure_of({{"layer.weight", w}}, [&] { return sum(to(w * w, DType::f32)); }) ==
        "the op cast of mul, behind layer");
}

}  // namespace
}  // namespace norma::test
