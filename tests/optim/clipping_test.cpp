// The global norm and clipping. Faults that others had are named by their threads.
#include "optim/clipping.h"

#include <cmath>
#include <limits>

#include "core/parallel.h"
#include "core/random.h"
#include "tests/optim/support.h"
#include "tests/support/catch.h"

namespace norma {
namespace {

using test::give_gradient;
using test::parameter;
using test::same_bits;

struct Two {
  explicit Two(double ga, double gb, DType dtype = DType::f32)
      : a(parameter({1}, {1}, dtype)),
        b(parameter({1}, {1}, dtype)),
        flat(flatten({{"a", a}, {"b", b}})) {
    give_gradient(a, {ga});
    give_gradient(b, {gb});
  }
  Tensor a, b;
  FlatParametersPtr flat;
};

TEST_CASE("the norm is of all gradients together", "[optim]") {
  Two m(3, 4);
  const Clipped clipped = clip_gradients(*m.flat, {.clip_norm = 1.0});
  CHECK(clipped.finite);
  CHECK(clipped.norm == 5);                     // before clipping
  CHECK(clipped.grad_scale == 1 / (5 + 1e-6));  // torch.nn.utils.clip_grad_norm_
  CHECK(m.a.grad().item() == 3);                // the factor goes to the optimizer
  CHECK(clip_gradients(*m.flat, {.clip_norm = 6.0}).grad_scale == 1);
  CHECK(clip_gradients(*m.flat, {}).grad_scale == 1);
  // Gradients that count half: the norm is 2.5.
  const Clipped half = clip_gradients(*m.flat, {.clip_norm = 1.0}, 0.5);
  CHECK(half.norm == 2.5);
  CHECK(half.grad_scale == Approx(0.5 / 2.5));
}

TEST_CASE("clip_value limits every element", "[optim]") {
  Two m(3, -0.5);
  const Clipped clipped = clip_gradients(*m.flat, {.clip_value = 1.0});
  CHECK(clipped.grad_scale == 1);
  CHECK(clipped.norm == Approx(std::sqrt(9.25)));
  CHECK(m.a.grad().item() == 1);
  CHECK(m.b.grad().item() == -0.5);
  // Both limits, and gradients that count twice: (6, 8) becomes (0.6, 0.8), then (0.6, 0.7).
  Two both(3, 4, DType::f64);
  CHECK(clip_gradients(*both.flat, {.clip_norm = 1.0, .clip_value = 0.7}, 2).norm == 10);
  CHECK(both.a.grad().item() == Approx(0.6));
  CHECK(both.b.grad().item() == 0.7);
}

TEST_CASE("zero, huge and non-finite gradients (pytorch/pytorch#46849)", "[optim]") {
  const double inf = std::numeric_limits<double>::infinity();
  Two zeros(0, 0);
  CHECK(clip_gradients(*zeros.flat, {.clip_norm = 1.0}).norm == 0);
  CHECK(clip_gradients(*zeros.flat, {.clip_norm = 1.0}).grad_scale == 1);

  Two huge(3e25, 4e25);  // the squares overflow f32
  CHECK(gradient_norm(*huge.flat).norm == Approx(5e25));
  CHECK(clip_gradients(*huge.flat, {.clip_norm = 1.0}).grad_scale == Approx(2e-26));
  Two huger(3e200, 4e200, DType::f64);  // the squares overflow f64
  CHECK(gradient_norm(*huger.flat).norm == Approx(5e200));

  for (const double bad : {inf, -inf, std::nan("")}) {
    Two m(3, bad);
    const Clipped clipped = clip_gradients(*m.flat, {.clip_norm = 1.0, .clip_value = 1.0});
    CHECK(!clipped.finite);
    CHECK(clipped.parameter == "b");
    CHECK(m.a.grad().item() == 3);  // the others are neither NaN nor zero
  }
  NORMA_CHECK_ERROR(clip_gradients(*zeros.flat, {.clip_norm = 0.0}),
                    "clip_norm: expected a number above 0; got 0");
}

TEST_CASE("a parameter without a gradient does not count", "[optim]") {
  Two m(3, 4);
  m.b.clear_grad();
  CHECK(gradient_norm(*m.flat).norm == 3);
}

TEST_CASE("the norm has the same bits at any number of threads", "[optim][threads]") {
  const int before = num_threads();
  for (const DType dtype : {DType::f32, DType::f64}) {
    std::vector<double> norms;
    for (const int threads : {1, 2, 8}) {
      set_num_threads(threads);
      Tensor w = Tensor::empty({777, 401}, dtype);
      fill_normal(w, 0, 1, random_key(3, "w"));
      Tensor b = parameter({3}, {1, 2, 3}, dtype);
      w.set_requires_grad();
      const FlatParametersPtr flat = flatten({{"b", b}, {"w", w}});
      w.set_grad(w.clone());
      b.set_grad(b.clone());
      norms.push_back(gradient_norm(*flat).norm);
      double sum = 14;
      for (const double x : w.to_vector()) sum += x * x;
      CHECK(norms.back() == Approx(std::sqrt(sum)).epsilon(1e-12));
    }
    CHECK(norms[0] == norms[1]);
    CHECK(norms[0] == norms[2]);
  }
  set_num_threads(before);
}

}  // namespace
}  // namespace norma
