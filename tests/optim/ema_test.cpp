#include "optim/ema.h"

#include "optim/loss_scaler.h"
#include "tests/optim/support.h"
#include "tests/support/catch.h"

namespace norma {
namespace {

using test::parameter;

TEST_CASE("the average of the weights", "[optim]") {
  Tensor w = parameter({2}, {1, 2}, DType::f64);
  Tensor b = parameter({1}, {3}, DType::f64);
  Ema ema(0.75, flatten({{"w", w}, {"b", b}}));
  {
    const NoGrad no_grad;
    w.copy_(Tensor::from({2}, {5, 6}, DType::f64));
  }
  ema.update();  // 0.75 * 1 + 0.25 * 5 = 2
  CHECK(find_tensor(ema.state(), "w")->tensor.to_vector() == std::vector<double>{2, 3});
  const auto version = w.version();
  {
    const EmaScope scope(&ema);
    CHECK(w.to_vector() == std::vector<double>{2, 3});
    CHECK(b.to_vector() == std::vector<double>{3});
    CHECK(w.version() > version);
  }
  CHECK(w.to_vector() == std::vector<double>{5, 6});

  Ema other(0.75,
            flatten({{"w", w.clone().set_requires_grad()}, {"b", b.clone().set_requires_grad()}}));
  other.load_state(ema.state());
  CHECK(other.state()[0].tensor.to_vector() == std::vector<double>{2, 3});
  NORMA_CHECK_ERROR(other.load_state({}), "ema: expected 2 averages; got 0");
  NORMA_CHECK_ERROR(Ema(1.0, flatten({{"w", w}})), "must lie in [0, 1); got 1");
}

TEST_CASE("the loss scale halves at once and doubles after 2000 good steps", "[optim]") {
  LossScaler scale = LossScaler::dynamic();
  CHECK(scale.scale() == 65536);
  CHECK(!scale.update(false));
  CHECK(scale.scale() == 32768);
  for (int i = 0; i < 1999; ++i) CHECK(scale.update(true));
  CHECK(scale.scale() == 32768);
  LossScaler resumed = LossScaler::dynamic();
  resumed.load_state(scale.state());
  CHECK(resumed.update(true));
  CHECK(resumed.scale() == 65536);
  CHECK(scale.update(false) == false);  // starts counting anew
  CHECK(scale.state() == LossScaler::State{16384, 0});
  // However long it goes on, never 0, which a resume would refuse.
  for (int i = 0; i < 2000; ++i) (void)scale.update(false);
  CHECK(scale.scale() == 0x1p-126);
  resumed.load_state(scale.state());

  LossScaler fixed = LossScaler::fixed(8);
  CHECK(!fixed.update(false));
  CHECK(fixed.scale() == 8);
  NORMA_CHECK_ERROR(LossScaler::fixed(0), "expected a number above 0; got 0");
}

}  // namespace
}  // namespace norma
