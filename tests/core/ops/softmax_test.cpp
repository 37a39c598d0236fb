#include "core/ops/softmax.h"

#include <cmath>
#include <limits>

#include "core/ops/arithmetic.h"
#include "core/ops/movement.h"
#include "core/ops/reduce.h"
#include "tests/support/op_case.h"

namespace norma::test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<double> naive(const Tensor& x, int axis, bool logarithm) {
  const AxisSplit s = split_at(x.shape(), axis < 0 ? axis + x.rank() : axis);
  const auto v = x.to_vector();
  std::vector<double> y(v.size());
  for (std::int64_t o = 0; o < s.outer; ++o) {
    for (std::int64_t i = 0; i < s.inner; ++i) {
      const auto at = [&](std::int64_t k) {
        return static_cast<std::size_t>((o * s.n + k) * s.inner + i);
      };
      double sum = 0;
      for (std::int64_t k = 0; k < s.n; ++k) sum += std::exp(v[at(k)]);
      for (std::int64_t k = 0; k < s.n; ++k) {
        y[at(k)] = logarithm ? v[at(k)] - std::log(sum) : std::exp(v[at(k)]) / sum;
      }
    }
  }
  return y;
}

OpCase softmax_case(Tensor (*op)(const Tensor&, int), int axis, bool logarithm) {
  return {
      .run = [=](const auto& in) { return op(in[0], axis); },
      .reference = [=](const auto& in) { return naive(in[0], axis, logarithm); },
      .samples = {{{2, 3}}, {{3, 1}}, {{5, 65}}, {{2, 3, 17}}, {{3, 5000}}, {{0, 3}}, {{300, 130}}},
      .low = -4,
      .high = 4,
      .errors = {{[=] {
                    (void)op(Tensor::zeros({2, 3}), 2);
                  },
                  "softmax: expected an axis in -2..1 for shape (2, 3); got 2"},
                 {[=] { (void)op(Tensor::zeros({2}, DType::i32), 0); },
                  "softmax: expected f32 or f64; got i32"}}};
}

NORMA_OP_CASE(softmax, last) { return softmax_case(softmax, -1, false); }
NORMA_OP_CASE(softmax, first) { return softmax_case(softmax, 0, false); }
NORMA_OP_CASE(log_softmax, last) { return softmax_case(log_softmax, -1, true); }
NORMA_OP_CASE(log_softmax, first) { return softmax_case(log_softmax, 0, true); }

// Golden values: torch 2.13.0.
TEST_CASE("softmax: as torch") {
  const Tensor x = Tensor::from({2, 3}, {1, -2, 0.5, 3, 0, -1}, DType::f64);
  CHECK(compare(softmax(x).to_vector(),
                {0.6037488961486258, 0.030058887569574023, 0.3661922162818002, 0.9362395518765058,
                 0.0466126225779739, 0.017147825545520388},
                1e-14) == "");
  CHECK(compare(log_softmax(x, 0).to_vector(),
                {-2.1269280110429727, -2.1269280110429727, -0.20141327798275246,
                 -0.1269280110429726, -0.1269280110429726, -1.7014132779827524},
                1e-14) == "");
}

TEST_CASE("softmax: -inf is a mask; where all is masked, output and gradient are 0") {
  for (std::int64_t n : {2, 40}) {
    std::vector<double> v(static_cast<std::size_t>(3 * n), -kInf);
    v[1] = 2;                                // one is left
    v[static_cast<std::size_t>(2 * n)] = 0;  // two are left
    v[static_cast<std::size_t>(3 * n - 1)] = 0;
    Tensor x = Tensor::from({3, n}, v).set_requires_grad();
    const Tensor y = softmax(x);
    const auto p = y.to_vector();
    CHECK(p[0] == 0);
    CHECK(p[1] == 1);
    for (std::int64_t i = n; i < 2 * n; ++i) CHECK(p[static_cast<std::size_t>(i)] == 0);
    CHECK(p[static_cast<std::size_t>(2 * n)] == 0.5);
    const Tensor u = random_tensor({3, n}, 3, DType::f32);
    for (bool create_graph : {false, true}) {
      const Tensor g =
          grad(sum(mul(y, u)), {x}, {.create_graph = create_graph, .retain_graph = true})[0];
      const auto d = g.to_vector();
      bool finite = true;
      for (double e : d) finite = finite && std::isfinite(e);
      CHECK(finite);
      for (std::int64_t i = n; i < 2 * n; ++i) CHECK(d[static_cast<std::size_t>(i)] == 0);
    }
    // The logarithm: -inf throughout, gradient 0.
    const Tensor z = log_softmax(x);
    CHECK(z.to_vector()[1] == 0);
    CHECK(z.to_vector()[static_cast<std::size_t>(n)] == -kInf);
    for (bool create_graph : {false, true}) {
      const Tensor dy = Tensor::ones({3, n});
      const Tensor g =
          grad(std::span(&z, 1), std::span<const Tensor>(&x, 1),
               {.create_graph = create_graph, .retain_graph = true}, std::span(&dy, 1))[0];
      for (std::int64_t i = n; i < 2 * n; ++i) {
        CHECK(g.to_vector()[static_cast<std::size_t>(i)] == 0);
      }
    }
  }
}

TEST_CASE("softmax: large values, NaN and +inf") {
  CHECK(softmax(Tensor::from({2}, {1e8, 1e8})).to_vector() == std::vector<double>{0.5, 0.5});
  CHECK(softmax(Tensor::from({2}, {-1e30, 1e30})).to_vector() == std::vector<double>{0, 1});
  for (double bad : {kNan, kInf}) {
    for (double other : {0.0, -kInf}) {
      for (std::int64_t n : {2, 40, 5000}) {
        std::vector<double> v(static_cast<std::size_t>(n), other);
        v[static_cast<std::size_t>(n / 2)] = bad;
        CHECK(std::isnan(sum(softmax(Tensor::from({n}, v))).item()));
        CHECK(std::isnan(sum(log_softmax(Tensor::from({n}, v))).item()));
      }
    }
  }
}

// See numpy/numpy#22956: a row of 4096 in half precision.
TEST_CASE("softmax: half types are computed in f32") {
  const Tensor y = softmax(Tensor::zeros({4096}, DType::f16));
  CHECK(y.dtype() == DType::f16);
  CHECK(y.to_vector()[17] == 1.0 / 4096);
}

TEST_CASE("softmax: adds to a gradient that stands") {
  Tensor x = random_tensor({3, 35}, 1, DType::f32).set_requires_grad();
  const Tensor u = random_tensor({3, 35}, 2, DType::f32);
  sum(mul(softmax(x), u)).backward();
  const Tensor once = x.grad().clone();
  sum(mul(softmax(x), u)).backward();
  CHECK(compare(x.grad(), mul_scalar(once, 2), 1e-7) == "");
  x.clear_grad();
  sum(mul(log_softmax(x), u)).backward();
  const Tensor first = x.grad().clone();
  sum(mul(log_softmax(x), u)).backward();
  CHECK(compare(x.grad(), mul_scalar(first, 2), 1e-6) == "");
}

}  // namespace
}  // namespace norma::test
