#include "core/kernels/gemm.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

#include "core/instructions.h"
#include "core/kernels/row_sums.h"
#include "core/parallel.h"
#include "tests/support/op_case.h"

namespace norma {
namespace {

using kernels::Product;

// Small integers: every sum is exact in f32, so any order of summation gives the same.
template <class T>
std::vector<T> integers(std::int64_t n, unsigned seed) {
  std::vector<T> values(static_cast<std::size_t>(n));
  for (T& v : values) {
    seed = seed * 1664525u + 1013904223u;
    v = static_cast<T>(static_cast<int>(seed >> 24) % 9 - 4);
  }
  return values;
}

template <class T>
std::vector<T> naive(const Product& p, T alpha, const std::vector<T>& a, const std::vector<T>& b,
                     T beta, std::vector<T> c) {
  for (std::int64_t i = 0; i < p.m; ++i) {
    for (std::int64_t j = 0; j < p.n; ++j) {
      T sum = 0;
      for (std::int64_t k = 0; k < p.k; ++k) {
        sum += a[static_cast<std::size_t>(p.transpose_a ? k * p.lda + i : i * p.lda + k)] *
               b[static_cast<std::size_t>(p.transpose_b ? j * p.ldb + k : k * p.ldb + j)];
      }
      T& to = c[static_cast<std::size_t>(i * p.ldc + j)];
      to = beta == T(0) ? alpha * sum : beta * to + alpha * sum;
    }
  }
  return c;
}

template <class T>
void check_product(std::int64_t m, std::int64_t n, std::int64_t k, bool ta, bool tb,
                   std::int64_t pad) {
  const Product p{m, n, k, ta, tb, (ta ? m : k) + pad, (tb ? k : n) + pad, n + pad};
  const auto a = integers<T>((ta ? k : m) * p.lda, 1), b = integers<T>((tb ? n : k) * p.ldb, 2);
  const auto c = integers<T>(m * p.ldc, 3);
  INFO("m " << m << " n " << n << " k " << k << " ta " << ta << " tb " << tb << " pad " << pad);
  for (const auto& [alpha, beta] : {std::pair<T, T>{1, 0}, {1, 1}, {T(-0.5), T(2)}}) {
    const std::vector<T> expected = naive(p, alpha, a, b, beta, c);
    std::vector<T> got = c;
    kernels::gemm(p, alpha, a.data(), b.data(), beta, got.data());
    CHECK(got == expected);
    got = c;
    kernels::gemm_serial(p, alpha, a.data(), b.data(), beta, got.data());
    CHECK(got == expected);
  }
}

TEST_CASE("gemm agrees with three loops at sizes around a block, a panel and a tile") {
  const std::vector<std::tuple<int, int, int>> sizes{
      {1, 1, 1},     {3, 5, 7},      {8, 32, 4},     {9, 33, 5},    {7, 31, 257}, {16, 16, 256},
      {24, 24, 16},  {130, 48, 66},  {97, 129, 71},  {300, 70, 40}, {5, 1030, 9}, {64, 64, 513},
      {70, 90, 601}, {141, 40, 160}, {264, 64, 300}, {520, 64, 64}, {11, 17, 9}};
  const test::BestInstructions afterwards;
  for (const std::string& set : instruction_sets()) {
    INFO("with " << set);
    set_instruction_set(set);
    for (const auto& [m, n, k] : sizes) {
      for (int flags = 0; flags < 4; ++flags) {
        check_product<float>(m, n, k, flags & 1, flags & 2, flags);
        check_product<double>(m, n, k, flags & 1, flags & 2, 3 - flags);
      }
    }
  }
}

TEST_CASE("gemm with an empty inner axis gives beta c, and reads no old content for beta 0") {
  std::vector<float> c(6, std::numeric_limits<float>::quiet_NaN());
  const float none = 0;
  kernels::gemm({.m = 2, .n = 3, .k = 0}, 1.0f, &none, &none, 0.0f, c.data());
  CHECK(c == std::vector<float>(6, 0.0f));
  c.assign(6, 2.0f);
  kernels::gemm({.m = 2, .n = 3, .k = 0}, 1.0f, &none, &none, 0.5f, c.data());
  CHECK(c == std::vector<float>(6, 1.0f));
  c.assign(6, std::numeric_limits<float>::quiet_NaN());
  const std::vector<float> ones(6, 1.0f);
  kernels::gemm({.m = 2, .n = 3, .k = 2}, 1.0f, ones.data(), ones.data(), 0.0f, c.data());
  CHECK(c == std::vector<float>(6, 2.0f));
  kernels::gemm({.m = 0, .n = 3, .k = 2}, 1.0f, &none, ones.data(), 0.0f, c.data());
  CHECK(c == std::vector<float>(6, 2.0f));
}

TEST_CASE("gemm_batched repeats a matrix with stride 0 and follows offsets") {
  const auto a = integers<float>(4 * 6, 4), b = integers<float>(2 * 15, 5);
  std::vector<float> c(4 * 10);
  const std::vector<std::int64_t> offsets{15, 0, 0, 15};
  const Product p{.m = 2, .n = 5, .k = 3};
  kernels::gemm_batched(4, p, 1.0f, a.data(), {.stride = 6}, b.data(), {.offsets = offsets.data()},
                        0.0f, c.data(), {.stride = 10});
  for (std::int64_t i = 0; i < 4; ++i) {
    std::vector<float> one(10);
    kernels::gemm_serial(p, 1.0f, a.data() + i * 6, b.data() + offsets[static_cast<std::size_t>(i)],
                         0.0f, one.data());
    CHECK(std::equal(one.begin(), one.end(), c.begin() + i * 10));
  }
  kernels::gemm_batched(4, p, 1.0f, a.data(), {}, b.data(), {}, 0.0f, c.data(), {.stride = 10});
  CHECK(std::equal(c.begin(), c.begin() + 10, c.begin() + 30));
}

TEST_CASE(
    "gemm's epilogue adds the bias, keeps the sum, applies the activation, adds the residual") {
  // The second without an epilogue is summed in halves of k.
  for (const Product& p : {Product{.m = 300, .n = 170, .k = 40},
                           Product{.m = 300, .n = 100, .k = 256, .transpose_a = true}}) {
    INFO(p.m << " x " << p.n << " x " << p.k);
    const auto a = integers<float>(p.m * p.k, 6), b = integers<float>(p.k * p.n, 7);
    const auto bias = integers<float>(p.n, 8), residual = integers<float>(p.m * p.n, 9);
    std::vector<float> product(static_cast<std::size_t>(p.m * p.n)), pre = product, y = product;
    kernels::gemm(p, 1.0f, a.data(), b.data(), 0.0f, product.data());
    kernels::Epilogue<float> e;
    e.bias = bias.data();
    e.pre = pre.data();
    e.activation = kernels::Activation::relu;
    kernels::gemm(p, 1.0f, a.data(), b.data(), 0.0f, y.data(), e);
    bool same = true;
    for (std::size_t i = 0; i < y.size(); ++i) {
      const float z = product[i] + bias[i % static_cast<std::size_t>(p.n)];
      same = same && pre[i] == z && y[i] == std::max(z, 0.0f);
    }
    CHECK(same);
    // Into a C whose rows lie apart.
    Product apart = p;
    apart.ldc = p.n + 3;
    std::vector<float> wide(static_cast<std::size_t>(p.m * apart.ldc), 0.5f);
    e.residual = residual.data();
    kernels::gemm(apart, 1.0f, a.data(), b.data(), 0.0f, wide.data(), e);
    for (std::int64_t i = 0; i < p.m; ++i) {
      for (std::int64_t j = 0; j < apart.ldc; ++j) {
        const auto k = static_cast<std::size_t>(i * p.n + j);
        const float expected = j < p.n ? y[k] + residual[k] : 0.5f;
        same = same && wide[static_cast<std::size_t>(i * apart.ldc + j)] == expected;
      }
    }
    CHECK(same);
  }
}

TEST_CASE("gemm and sum_rows give the same bits at any number of threads", "[threads]") {
  const int before = num_threads();
  const std::int64_t m = 200, n = 300, k = 700;
  std::vector<float> a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(k * n));
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = std::sin(static_cast<float>(i));
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = std::cos(static_cast<float>(i));
  std::vector<float> first, first_small, first_sum;
  for (int threads : {1, 2, 3, 8}) {
    set_num_threads(threads);
    std::vector<float> c(static_cast<std::size_t>(m * n)), sum(static_cast<std::size_t>(n));
    kernels::gemm({.m = m, .n = n, .k = k}, 1.0f, a.data(), b.data(), 0.0f, c.data());
    kernels::sum_rows(b.data(), k, n, false, sum.data());
    // Summed in halves, by itself and beside others.
    const Product halved{.m = 80, .n = 300, .k = k, .transpose_a = true};
    std::vector<float> small(static_cast<std::size_t>(80 * n), 1.0f), beside = small;
    kernels::gemm(halved, 1.0f, a.data(), b.data(), 1.0f, small.data());
    std::vector<float> other(c.size()), beside_sum(sum.size());
    const std::vector<kernels::ProductCall<float>> calls{
        {{.m = m, .n = n, .k = k}, a.data(), b.data(), 0.0f, other.data()},
        {halved, a.data(), b.data(), 1.0f, beside.data()}};
    const kernels::RowSumCall<float> columns{b.data(), k, n, false, beside_sum.data()};
    kernels::gemm_group(calls, std::span(&columns, 1));
    CHECK(other == c);
    CHECK(beside == small);
    CHECK(beside_sum == sum);
    if (threads == 1) {
      first = c;
      first_small = small;
      first_sum = sum;
    }
    CHECK(c == first);
    CHECK(small == first_small);
    CHECK(sum == first_sum);
  }
  set_num_threads(before);
}

TEST_CASE("sum_rows sums columns, and adds to what stands there if asked to") {
  const auto x = integers<double>(133 * 19, 9);
  std::vector<double> y(19, 1.0), expected(19, 0.0);
  for (std::size_t i = 0; i < x.size(); ++i) expected[i % 19] += x[i];
  kernels::sum_rows(x.data(), 133, 19, false, y.data());
  CHECK(y == expected);
  kernels::sum_rows(x.data(), 133, 19, true, y.data());
  for (double& v : expected) v *= 2;
  CHECK(y == expected);
  kernels::sum_rows(x.data(), 0, 19, false, y.data());
  CHECK(y == std::vector<double>(19, 0.0));
}

}  // namespace
}  // namespace norma
