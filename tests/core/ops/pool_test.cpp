#include "core/ops/pool.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/ops/cast.h"
#include "tests/support/op_case.h"

namespace norma::test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Windows of distinct values; `mean` divides by the kernel's size.
std::vector<double> naive(const Tensor& x, Extent k, Extent stride, Extent padding, bool mean) {
  const auto v = x.to_vector();
  const std::int64_t h = x.size(2), w = x.size(3);
  std::vector<double> y;
  for (std::int64_t p = 0; p < x.size(0) * x.size(1); ++p) {
    for (std::int64_t i = -padding.h; i + k.h <= h + padding.h; i += stride.h) {
      for (std::int64_t j = -padding.w; j + k.w <= w + padding.w; j += stride.w) {
        double sum = 0, most = -kInf;
        for (std::int64_t r = i; r < i + k.h; ++r) {
          for (std::int64_t c = j; c < j + k.w; ++c) {
            if (r < 0 || r >= h || c < 0 || c >= w) continue;
            const double e = v[static_cast<std::size_t>((p * h + r) * w + c)];
            sum += e;
            most = std::max(most, e);
          }
        }
        y.push_back(mean ? sum / static_cast<double>(k.h * k.w) : most);
      }
    }
  }
  return y;
}

OpCase row(bool mean, Extent kernel, Pool2dOptions options, std::vector<Shape> shapes) {
  OpCase c;
  c.run = [=](const std::vector<Tensor>& x) {
    return mean ? avg_pool2d(x[0], kernel, options) : max_pool2d(x[0], kernel, options);
  };
  c.reference = [=](const std::vector<Tensor>& x) {
    return naive(x[0], kernel, options.stride.value_or(kernel), options.padding, mean);
  };
  for (const Shape& s : shapes) c.samples.push_back({s});
  return c;
}

NORMA_OP_CASE(max_pool2d, two) {
  OpCase c = row(false, 2, {}, {{2, 3, 4, 6}, {1, 1, 5, 7}, {1, 2, 2, 2}, {0, 2, 4, 4}});
  const Tensor x = Tensor::ones({1, 1, 3, 3});
  c.errors = {
      {[=] { (void)max_pool2d(x, 2, {.padding = 2}); },
       "max_pool2d: padding must be at most half of the kernel (2, 2); got (2, 2)"},
      {[=] { (void)max_pool2d(x, 4); },
       "max_pool2d: the kernel must not reach over more than the padded input; got kernel (4, 4) "
       "with dilation (1, 1) on an input of (3, 3) with padding (0, 0)"},
      {[=] { (void)max_pool2d(x, 2, {.stride = 0}); },
       "max_pool2d: stride must be at least 1; got (0, 0)"},
      {[=] { (void)max_pool2d(x, 0); }, "max_pool2d: kernel must be at least 1; got (0, 0)"},
      {[] {
         (void)max_pool2d(Tensor::ones({3, 3}), 2);
       },
       "max_pool2d: x must have the axes (samples, channels, height, width); got (3, 3)"},
  };
  return c;
}
NORMA_OP_CASE(max_pool2d, overlapping) {
  return row(false, {3, 2}, {.stride = Extent{2, 1}, .padding = 1}, {{2, 2, 7, 5}, {1, 1, 1, 1}});
}
NORMA_OP_CASE(avg_pool2d, two) {
  OpCase c = row(true, 2, {}, {{2, 3, 4, 6}, {1, 1, 5, 7}, {0, 2, 4, 4}});
  c.errors = {{[] {
                 (void)avg_pool2d(Tensor::ones({1, 1, 3, 3}), {2, 4}, {.padding = {2, 2}});
               },
               "avg_pool2d: padding must be at most half of the kernel (2, 4); got (2, 2)"}};
  return c;
}
NORMA_OP_CASE(avg_pool2d, overlapping) {
  return row(true, {3, 2}, {.stride = Extent{2, 1}, .padding = 1}, {{2, 2, 7, 5}, {1, 1, 1, 1}});
}
NORMA_OP_CASE(global_avg_pool, all) {
  OpCase c;
  c.run = [](const std::vector<Tensor>& x) { return global_avg_pool(x[0]); };
  c.reference = [](const std::vector<Tensor>& x) {
    return naive(x[0], {x[0].size(2), x[0].size(3)}, 1, 0, true);
  };
  c.samples = {{{2, 3, 4, 5}}, {{1, 1, 1, 1}}, {{0, 3, 2, 2}}, {{2, 1, 9, 15}}};
  c.errors = {{[] {
                 (void)global_avg_pool(Tensor::ones({2, 3, 0, 4}));
               },
               "global_avg_pool: cannot average over no pixels; got (2, 3, 0, 4)"},
              {[] {
                 (void)global_avg_pool(Tensor::ones({2, 3}));
               },
               "global_avg_pool: x must have"}};
  return c;
}

// Value and gradient (of ones) of max_pool2d.
std::pair<std::vector<double>, std::vector<double>> value_and_gradient(const Shape& shape,
                                                                       std::vector<double> values,
                                                                       Extent kernel,
                                                                       Pool2dOptions options = {}) {
  Tensor x = Tensor::from(shape, values);
  x.set_requires_grad();
  const Tensor y = max_pool2d(x, kernel, options);
  backward(y, Tensor::ones(y.shape()));
  return {y.to_vector(), x.grad().to_vector()};
}

// Fault pytorch/pytorch#41294: the padding never wins, windows of -inf and NaN route their gradient
// to an element.
TEST_CASE("max_pool2d leaves the padding out") {
  const auto [y, dx] =
      value_and_gradient({1, 1, 2, 2}, {-1, -1, -1, -1}, 3, {.stride = 1, .padding = 1});
  CHECK(y == std::vector<double>(4, -1.0));
  CHECK(dx == std::vector<double>{4, 0, 0, 0});
}
TEST_CASE("max_pool2d of -inf gives -inf and its gradient to the first element") {
  for (const std::int64_t kernel : {2, 3}) {
    const auto n = static_cast<std::size_t>(kernel * kernel);
    const auto [y, dx] =
        value_and_gradient({1, 1, kernel, kernel}, std::vector<double>(n, -kInf), kernel);
    CHECK(y == std::vector<double>{-kInf});
    std::vector<double> first(n, 0.0);
    first[0] = 1;
    CHECK(dx == first);
  }
}
TEST_CASE("max_pool2d hands on NaN, and its gradient to the first of them") {
  for (std::size_t at = 0; at < 4; ++at) {
    std::vector<double> values{kInf, 5, 6, 7}, expected(4, 0.0);
    values[at] = kNan;
    expected[at] = 1;
    if (at < 3) values[3] = kNan;
    const auto [y, dx] = value_and_gradient({1, 1, 2, 2}, values, 2);
    CHECK(std::isnan(y[0]));
    CHECK(dx == expected);
    const auto [y1, dx1] = value_and_gradient({1, 1, 2, 2}, values, 2, {.stride = 1});
    CHECK(std::isnan(y1[0]));
    CHECK(dx1 == expected);
  }
}
TEST_CASE("max_pool2d in vectors agrees with f64, NaN and equal maxima included") {
  for (const std::int64_t w : {6, 8, 15, 18, 34, 70}) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < 4 * w; ++i) {
      const auto v = static_cast<double>(i * 7919 % 5);
      values.push_back(v == 4 ? kNan : v == 3 ? -kInf : v);
    }
    Tensor a = Tensor::from({1, 1, 4, w}, values),
           b = Tensor::from({1, 1, 4, w}, values, DType::f64);
    a.set_requires_grad();
    b.set_requires_grad();
    const Tensor ya = max_pool2d(a, 2), yb = max_pool2d(b, 2);
    CHECK(compare(ya.to_vector(), yb.to_vector(), 0) == "");
    backward(ya, Tensor::ones(ya.shape()));
    backward(yb, Tensor::ones(yb.shape(), DType::f64));
    CHECK(a.grad().to_vector() == b.grad().to_vector());
  }
}
// Fault pytorch/pytorch#56734.
TEST_CASE("max_pool2d gives the gradient to the first of equal maxima in row-major order") {
  CHECK(value_and_gradient({1, 1, 2, 2}, {1, 3, 3, 3}, 2).second ==
        std::vector<double>{0, 1, 0, 0});
  CHECK(value_and_gradient({1, 1, 2, 2}, {1, 1, 3, 3}, 2).second ==
        std::vector<double>{0, 0, 1, 0});
  CHECK(value_and_gradient({1, 1, 3, 3}, {0, 0, 2, 0, 2, 0, 2, 0, 0}, 3).second ==
        std::vector<double>{0, 0, 1, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("pooling adds into gradients that stand already") {
  Tensor x = random_tensor({2, 2, 4, 4}, 1);
  x.set_requires_grad();
  const Tensor dy = random_tensor({2, 2, 2, 2}, 2), dz = random_tensor({2, 2}, 3);
  const auto once = [&](const Tensor& y, const Tensor& g) {
    x.clear_grad();
    backward(y, g);
    return x.grad().to_vector();
  };
  std::vector<double> sum = once(max_pool2d(x, 2), dy);
  const auto avg = once(avg_pool2d(x, 2), dy), global = once(global_avg_pool(x), dz);
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += avg[i] + global[i];
  x.clear_grad();
  backward(max_pool2d(x, 2), dy);
  backward(avg_pool2d(x, 2), dy);
  backward(global_avg_pool(x), dz);
  CHECK(compare(x.grad().to_vector(), sum, 1e-14) == "");
}

TEST_CASE("pooling of half types rounds once") {
  const Tensor x = random_tensor({2, 3, 4, 4}, 1, DType::bf16), wide = to(x, DType::f32);
  CHECK(same_bits(max_pool2d(x, 2), to(max_pool2d(wide, 2), DType::bf16)));
  CHECK(same_bits(avg_pool2d(x, 2), to(avg_pool2d(wide, 2), DType::bf16)));
  CHECK(same_bits(global_avg_pool(x), to(global_avg_pool(wide), DType::bf16)));
}

}  // namespace
}  // namespace norma::test
