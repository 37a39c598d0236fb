// The family of losses: what a configuration computes.
#include "layers/losses.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/support/catch.h"

namespace norma {
namespace {

LossConfig loss_of(const char* text) {
  return config::parse<LossConfig>(config::Json::parse(text), "loss");
}

// Values by hand, for x = (0, 2, -3), t = (1, 0, -1): d = (-1, 2, -2).
TEST_CASE("losses of predictions against targets") {
  const Tensor x = Tensor::from({3}, {0, 2, -3}, DType::f64);
  const Tensor t = Tensor::from({3}, {1, 0, -1}, DType::f64);
  CHECK(loss_of("\"mse\"").apply(x, t).item() == Approx(3.0));
  CHECK(loss_of("\"mae\"").apply(x, t).item() == Approx(5.0 / 3));
  CHECK(loss_of("\"huber\"").apply(x, t).item() == Approx((0.5 + 1.5 + 1.5) / 3));
  CHECK(loss_of(R"({"type": "huber", "delta": 2})").apply(x, t).item() ==
        Approx((0.5 + 2 + 2) / 3));
  const Tensor p = Tensor::from({3}, {1, 0, 0.5}, DType::f64);
  CHECK(loss_of("\"bce\"").apply(x, p).item() ==
        Approx((std::log(2.0) + std::log1p(std::exp(2.0)) + std::log1p(std::exp(-3.0)) + 1.5) / 3));
}

TEST_CASE("cross_entropy passes its options on, and ignores -100 as PyTorch does") {
  const Tensor x = Tensor::from({2, 3}, {0, 0, 0, 0, 1, 2}, DType::f64);
  const Tensor t = Tensor::from({2}, {1, -100}, DType::i64);
  CHECK(loss_of("\"cross_entropy\"").apply(x, t).item() == Approx(std::log(3.0)));
  CHECK(loss_of(R"({"type": "cross_entropy", "z_loss": 0.5})").apply(x, t).item() ==
        Approx(std::log(3.0) + 0.5 * std::log(3.0) * std::log(3.0)));
  // A uniform prediction has the same loss whatever the smoothing; another one has not.
  const Tensor two = Tensor::from({1}, {2}, DType::i64);
  const Tensor logits = Tensor::from({1, 3}, {0, 1, 2}, DType::f64);
  const double z = std::log(1 + std::exp(1.0) + std::exp(2.0));
  CHECK(loss_of(R"({"type": "cross_entropy", "label_smoothing": 0.3})").apply(logits, two).item() ==
        Approx(0.7 * (z - 2) + 0.3 * (z - 1)));
  NORMA_CHECK_ERROR(loss_of(R"({"type": "cross_entropy", "ignore": -1})").apply(x, t), "-100");
}

TEST_CASE("a wrong option is refused with its path, and a target without a meaning") {
  NORMA_CHECK_ERROR(loss_of(R"({"type": "huber", "delta": 0})"), "loss.delta: must be above 0");
  NORMA_CHECK_ERROR(loss_of(R"({"type": "cross_entropy", "label_smoothing": 1.5})"),
                    "loss.label_smoothing: must be in [0, 1]; got 1.5");
  const Tensor two = Tensor::from({1}, {2});
  NORMA_CHECK_ERROR(loss_of("\"bce\"").apply(two, two), "bce: expected targets in [0, 1]");
  for (const double bad : {-0.5, std::numeric_limits<double>::quiet_NaN()}) {
    const Tensor targets = Tensor::full(two.shape(), bad, two.dtype());
    NORMA_CHECK_ERROR(loss_of("\"bce\"").apply(two, targets), "as probabilities; got");
  }
  NORMA_CHECK_ERROR(loss_of("\"crossentropy\""), "nearest known name is \"cross_entropy\"");
}

}  // namespace
}  // namespace norma
