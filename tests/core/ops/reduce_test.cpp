#include "core/ops/reduce.h"

#include <cmath>
#include <limits>

#include "core/ops/arithmetic.h"
#include "core/ops/movement.h"
#include "core/parallel.h"
#include "tests/support/op_case.h"

namespace norma::test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// f over the elements that each output sees, found through the indices.
template <class F>
std::vector<double> naive(const Tensor& x, const Axes& axes, F f) {
  const AxisMask mask = axis_mask("test", x.shape(), axes);
  std::vector<std::vector<double>> seen(
      static_cast<std::size_t>(reduced_shape(x.shape(), mask, Keep::no).numel()));
  const auto v = x.to_vector();
  for (std::int64_t k = 0; k < x.numel(); ++k) {
    std::int64_t rest = k, to = 0, step = 1;
    for (int i = x.rank() - 1; i >= 0; --i) {
      if ((mask >> i & 1) == 0) {
        to += rest % x.size(i) * step;
        step *= x.size(i);
      }
      rest /= x.size(i);
    }
    seen[static_cast<std::size_t>(to)].push_back(v[static_cast<std::size_t>(k)]);
  }
  std::vector<double> y;
  for (const auto& s : seen) y.push_back(f(s));
  return y;
}

double naive_sum(const std::vector<double>& v) {
  double s = 0;
  for (double x : v) s += x;
  return s;
}
double naive_max(const std::vector<double>& v) { return *std::max_element(v.begin(), v.end()); }
double naive_min(const std::vector<double>& v) { return *std::min_element(v.begin(), v.end()); }
double naive_squares(const std::vector<double>& v, double c) {
  double s = 0;
  for (double x : v) s += (x - c) * (x - c);
  return s;
}
double naive_norm(const std::vector<double>& v) { return std::sqrt(naive_squares(v, 0)); }
double naive_var(const std::vector<double>& v) {
  const auto n = static_cast<double>(v.size());
  return naive_squares(v, naive_sum(v) / n) / (n - 1);
}
double naive_logsumexp(const std::vector<double>& v) {
  double s = 0;
  for (double x : v) s += std::exp(x);
  return std::log(s);
}

using Op = Tensor (*)(const Tensor&, const Axes&, Keep);
using Naive = double (*)(const std::vector<double>&);

OpCase reduce_case(Op op, Naive f, const Axes& axes, std::vector<std::vector<Shape>> samples) {
  return {.run = [=](const auto& in) { return op(in[0], axes, Keep::no); },
          .reference = [=](const auto& in) { return naive(in[0], axes, f); },
          .samples = std::move(samples)};
}
const std::vector<std::vector<Shape>> kSamples = {
    {{2, 3, 4}}, {{1, 5, 1}}, {{3, 67, 5}}, {{40, 9, 130}}};

Tensor var_of(const Tensor& x, const Axes& axes, Keep keep) { return var(x, axes, {.keep = keep}); }

NORMA_OP_CASE(max, middle) { return reduce_case(max, naive_max, {1}, kSamples); }
NORMA_OP_CASE(max, last) { return reduce_case(max, naive_max, {-1}, kSamples); }
NORMA_OP_CASE(max, apart) { return reduce_case(max, naive_max, {0, 2}, kSamples); }
NORMA_OP_CASE(max, all) {
  OpCase c = reduce_case(max, naive_max, {}, {{{}}, {{7}}, {{50, 70}}});
  c.errors = {{[] {
                 (void)max(Tensor::zeros({2, 0}), {1});
               },
               "max: expected at least one element to reduce; got shape (2, 0)"},
              {[] {
                 (void)max(Tensor::zeros({2, 3}), {2});
               },
               "max: expected an axis in -2..1 for shape (2, 3); got 2"},
              {[] {
                 (void)max(Tensor::zeros({2, 3}), {1, -1});
               },
               "max: axis -1 of shape (2, 3) is named twice"}};
  return c;
}
NORMA_OP_CASE(min, leading) { return reduce_case(min, naive_min, {0}, kSamples); }
NORMA_OP_CASE(min, all) { return reduce_case(min, naive_min, {}, {{{7}}, {{50, 70}}}); }
NORMA_OP_CASE(norm, leading) { return reduce_case(norm, naive_norm, {0}, kSamples); }
NORMA_OP_CASE(norm, apart) { return reduce_case(norm, naive_norm, {0, 2}, kSamples); }
NORMA_OP_CASE(norm, all) {
  return reduce_case(norm, naive_norm, {}, {{{7}}, {{100, 1000}}, {{1, 2}}});
}
NORMA_OP_CASE(var, last) {
  OpCase c = reduce_case(var_of, naive_var, {2}, {{{2, 3, 4}}, {{3, 5, 67}}, {{40, 9, 130}}});
  c.errors = {{[] {
                 (void)var(Tensor::zeros({3, 1}), {1});
               },
               "var: expected more than 1 elements, the correction; got 1 of shape (3, 1)"}};
  return c;
}
NORMA_OP_CASE(var, apart) {
  return reduce_case(var_of, naive_var, {0, 2}, {{{2, 3, 4}}, {{3, 67, 5}}, {{40, 9, 130}}});
}
NORMA_OP_CASE(var, all) { return reduce_case(var_of, naive_var, {}, {{{7}}, {{100, 1000}}}); }
NORMA_OP_CASE(logsumexp, last) { return reduce_case(logsumexp, naive_logsumexp, {-1}, kSamples); }
NORMA_OP_CASE(logsumexp, middle) { return reduce_case(logsumexp, naive_logsumexp, {1}, kSamples); }
NORMA_OP_CASE(logsumexp, apart) {
  return reduce_case(logsumexp, naive_logsumexp, {0, -1}, kSamples);
}

TEST_CASE("sum and mean: every set of axes") {
  const Tensor x = random_tensor({3, 4, 5, 2}, 1);
  for (AxisMask mask = 1; mask < 16; ++mask) {
    std::vector<int> axes;
    for (int i = 0; i < 4; ++i) {
      if (mask >> i & 1) axes.push_back(i);
    }
    CHECK(compare(sum(x, axes).to_vector(), naive(x, axes, naive_sum), 1e-14) == "");
    const auto n = static_cast<double>(reduced_count(x.shape(), mask));
    CHECK(compare(mean(x, axes).to_vector(),
                  naive(x, axes, [n](const auto& v) { return naive_sum(v) / n; }), 1e-14) == "");
    const auto f = [&](const std::vector<Tensor>& in) {
      return mul(sum(in[0], axes, Keep::yes), mean(mul(in[0], in[0]), axes, Keep::yes));
    };
    CHECK(check_gradient(f, {x}) == "");
    CHECK(check_second_gradient(f, {x}) == "");
  }
  CHECK(sum(x, {1}, Keep::yes).shape() == Shape{3, 1, 5, 2});
  CHECK(sum(x).shape() == Shape{});
  CHECK(sum(x, {-1, 0}).shape() == Shape{4, 5});
  CHECK(sum(Tensor::zeros({0, 3}), {0}).to_vector() == std::vector<double>{0, 0, 0});
  NORMA_CHECK_ERROR(mean(Tensor::zeros({0, 3}), {0}),
                    "mean: expected at least one element to reduce; got shape (0, 3)");
}

// Source: numpy/numpy#22956: a running f32 sum stops at 16777216.
TEST_CASE("mean: 20000000 ones give exactly 1") {
  const Tensor x = Tensor::ones({20000000, 1});
  CHECK(mean(x, {0}).item() == 1.0);
  CHECK(mean(x).item() == 1.0);
  CHECK(mean(reshape(x, {5000000, 4}), {0}).to_vector() == std::vector<double>{1, 1, 1, 1});
  CHECK(sum(x).item() == 20000000.0);
}

// Source: pytorch/pytorch#2201.
TEST_CASE("sum: a million numbers of mixed size, the same bits at any number of threads") {
  const Tensor a = random_tensor({1000000}, 4);
  const Tensor x = mul(mul(mul(a, a), a), mul(a, Tensor::scalar(1e4, DType::f64)));
  const Tensor narrow = Tensor::from(x.shape(), x.to_vector());
  const int before = num_threads();
  set_num_threads(1);
  const Tensor one = sum(narrow), squares = norm(narrow), largest = max(narrow);
  for (int threads : {2, 4, 7}) {
    set_num_threads(threads);
    CHECK(same_bits(sum(narrow), one));
    CHECK(same_bits(norm(narrow), squares));
    CHECK(same_bits(max(narrow), largest));
  }
  set_num_threads(before);
}

// Source: pytorch/pytorch#56734.
TEST_CASE("max and min: equal elements share the gradient") {
  Tensor x = Tensor::from({4}, {1, 3, 3, 2}).set_requires_grad();
  max(x).backward();
  CHECK(x.grad().to_vector() == std::vector<double>{0, 0.5, 0.5, 0});
  Tensor z = Tensor::from({2, 3}, {4, 4, 4, 1, 2, 1}).set_requires_grad();
  backward(min(z, {1}), Tensor::from({2}, {3, 2}));
  CHECK(z.grad().to_vector() == std::vector<double>{1, 1, 1, 1, 0, 1});
}

TEST_CASE("max, min and argmax: NaN and infinities") {
  // Rows of fewer and of more than four vectors, with the NaN in the first ones and in the rest.
  const auto [size, at] = GENERATE(table<std::int64_t, std::size_t>(
      {{40, 0}, {40, 5}, {40, 36}, {40, 39}, {200, 3}, {200, 130}, {200, 190}, {200, 199}}));
  {
    const auto n = static_cast<std::size_t>(size);
    std::vector<double> v(n, 1.0);
    v[at] = kNan;
    const Tensor x = Tensor::from({size}, v);
    CHECK(std::isnan(max(x).item()));
    CHECK(std::isnan(min(x).item()));
    CHECK(argmax(x).item() == static_cast<double>(at));
    CHECK(std::isnan(max(reshape(x, {size, 1}), {0}).item()));
    const Tensor columns = Tensor::from({2, size}, [&] {
      auto w = v;
      w.insert(w.end(), n, 2.0);
      return w;
    }());
    const auto m = max(columns, {0}).to_vector();
    CHECK(std::isnan(m[at]));
    CHECK(m[(at + 1) % n] == 2.0);
  }
  CHECK(max(Tensor::from({2}, {-kInf, -kInf})).item() == -kInf);
  CHECK(min(Tensor::from({2}, {kInf, 3})).item() == 3);
}

TEST_CASE("max and min: longer than one chunk") {
  std::vector<double> v(100000);
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = std::sin(static_cast<double>(i));
  v[70001] = 2;
  v[99999] = -2;
  const Tensor x = Tensor::from({100000}, v);
  CHECK(max(x).item() == 2);
  CHECK(min(x).item() == -2);
  CHECK(argmax(x).item() == 70001);
}

TEST_CASE("argmax: the first of equal ones, along any axis, unrecorded") {
  const Tensor x = Tensor::from({2, 3}, {1, 5, 5, 7, 2, 7}).set_requires_grad();
  CHECK(argmax(x).to_ids() == std::vector<std::int64_t>{1, 0});
  CHECK(argmax(x, 0).to_ids() == std::vector<std::int64_t>{1, 0, 1});
  CHECK(argmax(x, 0, Keep::yes).shape() == Shape{1, 3});
  CHECK(argmax(x).dtype() == DType::i64);
  CHECK_FALSE(argmax(x).requires_grad());
  CHECK(argmax(Tensor::from({1, 2}, {1, 3}, DType::bf16)).item() == 1);
  NORMA_CHECK_ERROR(argmax(Tensor::zeros({2, 0})),
                    "argmax: expected at least one element to reduce");
}

// Golden values: torch 2.13.0.
TEST_CASE("var and deviation: as torch.var and torch.std") {
  const Tensor x = Tensor::from({2, 3}, {1, -2, 0.5, 3, 0, -1}, DType::f64);
  CHECK(compare(var(x).to_vector(), {2.975}, 1e-14) == "");
  CHECK(compare(var(x, {1}).to_vector(), {2.5833333333333335, 4.333333333333333}, 1e-14) == "");
  CHECK(compare(var(x, {1}, {.correction = 0}).to_vector(), {1.7222222222222223, 2.888888888888889},
                1e-14) == "");
  CHECK(compare(deviation(x, {1}).to_vector(), {1.6072751268321592, 2.0816659994661326}, 1e-14) ==
        "");
  // A mean far from 0: E[x^2] - E[x]^2 would lose everything.
  const Tensor far = Tensor::from({4}, {1e6 + 1, 1e6 + 2, 1e6 + 3, 1e6 + 4});
  CHECK(var(far, {}, {.correction = 0}).item() == 1.25);
}

// Source: pytorch/pytorch#2421 and #4320.
TEST_CASE("norm and deviation: the gradient at 0 is 0") {
  Tensor x = Tensor::zeros({2}).set_requires_grad();
  norm(x).backward();
  CHECK(x.grad().to_vector() == std::vector<double>{0, 0});
  x.clear_grad();
  const Tensor n = norm(x);
  mul(n, n).backward();
  CHECK(x.grad().to_vector() == std::vector<double>{0, 0});
  Tensor c = Tensor::full({5}, 3.0).set_requires_grad();
  deviation(c).backward();
  CHECK(c.grad().to_vector() == std::vector<double>{0, 0, 0, 0, 0});
  NORMA_CHECK_ERROR(deviation(Tensor::ones({1})),
                    "deviation: expected more than 1 elements, the correction; got 1");
  // Squares above the range of f32.
  CHECK(norm(Tensor::from({2}, {3e25, 4e25})).item() == Approx(5e25));
}

TEST_CASE("logsumexp: huge values, -inf and NaN") {
  CHECK(logsumexp(Tensor::from({2}, {1000, 1000})).item() == Approx(1000.6931471806));
  CHECK(logsumexp(Tensor::from({2}, {-kInf, 2})).item() == 2);
  CHECK(std::isnan(logsumexp(Tensor::from({2}, {kNan, -kInf})).item()));
  Tensor x = Tensor::from({2, 2}, {-kInf, -kInf, 0, 0}).set_requires_grad();
  const Tensor y = logsumexp(x, {1});
  CHECK(y.to_vector()[0] == -kInf);
  sum(y).backward();
  CHECK(x.grad().to_vector() == std::vector<double>{0, 0, 0.5, 0.5});
}

TEST_CASE("reductions of half types run in f32") {
  const Tensor x = Tensor::ones({4096}, DType::f16);
  CHECK(mean(x).item() == 1.0);
  CHECK(sum(x).item() == 4096.0);
  CHECK(mean(x).dtype() == DType::f16);
  CHECK(norm(x).item() == 64.0);
  CHECK(max(x).item() == 1.0);
  CHECK(var(x).item() == 0.0);
  CHECK(logsumexp(Tensor::zeros({2}, DType::bf16)).item() == Approx(0.693).margin(2e-3));
}

}  // namespace
}  // namespace norma::test
