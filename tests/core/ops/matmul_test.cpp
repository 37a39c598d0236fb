#include "core/ops/matmul.h"

#include <cmath>

#include "core/ops/cast.h"
#include "core/parallel.h"
#include "tests/support/op_case.h"

namespace norma::test {
namespace {

// Naive product of broadcast batches, from f64 inputs.
std::vector<double> naive(const Tensor& a, const Tensor& b, bool ta, bool tb) {
  const Shape lead =
      broadcast_shapes("test", a.shape().sub(0, a.rank() - 2), b.shape().sub(0, b.rank() - 2));
  const std::int64_t m = a.size(ta ? -1 : -2), k = a.size(ta ? -2 : -1), n = b.size(tb ? -2 : -1);
  const auto va = a.to_vector(), vb = b.to_vector();
  const auto item = [&](const Tensor& x, std::int64_t index) {
    std::int64_t offset = 0, step = 1;
    for (int axis = lead.rank() - 1, own = x.rank() - 3; own >= 0; --axis, --own) {
      if (x.size(own) != 1) offset += index % lead[axis] * step;
      index /= lead[axis];
      step *= x.size(own);
    }
    return offset;
  };
  std::vector<double> y;
  for (std::int64_t l = 0; l < lead.numel(); ++l) {
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (std::int64_t p = 0; p < k; ++p) {
          sum += va[static_cast<std::size_t>(item(a, l) * m * k + (ta ? p * m + i : i * k + p))] *
                 vb[static_cast<std::size_t>(item(b, l) * k * n + (tb ? j * k + p : p * n + j))];
        }
        y.push_back(sum);
      }
    }
  }
  return y;
}

OpCase row(bool ta, bool tb, std::vector<std::vector<Shape>> samples) {
  OpCase c;
  c.run = [=](const std::vector<Tensor>& x) {
    return matmul(x[0], x[1], {.transpose_a = ta, .transpose_b = tb});
  };
  c.reference = [=](const std::vector<Tensor>& x) { return naive(x[0], x[1], ta, tb); };
  c.samples = std::move(samples);
  c.tolerance_f32 = 1e-5;
  return c;
}

NORMA_OP_CASE(matmul, plain) {
  OpCase c = row(false, false,
                 {{{2, 3}, {3, 4}},
                  {{1, 1}, {1, 1}},
                  {{17, 33}, {33, 35}},
                  {{0, 3}, {3, 4}},
                  {{2, 0}, {0, 4}},
                  {{2, 3}, {3, 0}},
                  {{2, 5, 3}, {2, 3, 4}},
                  {{2, 2, 5, 3}, {3, 4}},
                  {{5, 3}, {4, 3, 2}},
                  {{2, 1, 3, 2}, {3, 2, 4}},
                  {{1, 3, 2}, {4, 2, 3}}});
  c.errors = {
      {[] {
         (void)matmul(Tensor::ones({2, 3}), Tensor::ones({4, 5}));
       },
       "matmul: the inner sizes must agree; got 3 of a (2, 3) and 4 of b (4, 5)"},
      {[] {
         (void)matmul(Tensor::ones({2, 3}), Tensor::ones({5, 4}), {.transpose_b = true});
       },
       "matmul: the inner sizes must agree; got 3 of a (2, 3) and 4 of b (5, 4) transposed"},
      {[] {
         (void)matmul(Tensor::ones({3}), Tensor::ones({3, 4}));
       },
       "matmul: a and b must have at least two axes; got (3) and (3, 4)"},
      {[] {
         (void)matmul(Tensor::ones({2, 3}), Tensor::ones({3, 4}, DType::f64));
       },
       "matmul: a and b must have one floating type; got f32 and f64"},
      {[] {
         (void)matmul(Tensor::ones({2, 2, 3}), Tensor::ones({3, 3, 4}));
       },
       "(2)"},
  };
  return c;
}
NORMA_OP_CASE(matmul, a_transposed) {
  return row(true, false, {{{3, 2}, {3, 4}}, {{2, 3, 5}, {2, 3, 4}}, {{2, 3, 5}, {3, 4}}});
}
NORMA_OP_CASE(matmul, b_transposed) {
  return row(false, true, {{{2, 3}, {4, 3}}, {{2, 5, 3}, {2, 4, 3}}, {{2, 5, 3}, {4, 3}}});
}
NORMA_OP_CASE(matmul, both_transposed) {
  return row(true, true, {{{3, 2}, {4, 3}}, {{2, 3, 5}, {4, 3}}, {{3, 5}, {2, 4, 3}}});
}

TEST_CASE("matmul of half types multiplies in f32 and rounds once") {
  const Tensor a = random_tensor({5, 40}, 1, DType::bf16),
               b = random_tensor({40, 3}, 2, DType::bf16);
  const Tensor y = matmul(a, b);
  CHECK(y.dtype() == DType::bf16);
  CHECK(same_bits(y, to(matmul(to(a, DType::f32), to(b, DType::f32)), DType::bf16)));
}

TEST_CASE("matmul of an empty inner axis is zero, with empty gradients") {
  Tensor a = Tensor::ones({2, 0}), b = Tensor::ones({0, 3});
  a.set_requires_grad();
  b.set_requires_grad();
  const Tensor y = matmul(a, b);
  CHECK(y.to_vector() == std::vector<double>(6, 0.0));
  backward(y, Tensor::ones({2, 3}));
  CHECK(a.grad().shape() == Shape{2, 0});
  CHECK(b.grad().shape() == Shape{0, 3});
}

TEST_CASE("a product whose sizes are all large, through OpenBLAS, in all four layouts",
          "[matmul]") {
  const std::int64_t m = 1030, n = 1100, k = 1025;
  // A row and a column of the product, by hand, and the same bits at any number of threads.
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      const Tensor a = random_tensor(ta ? Shape{k, m} : Shape{m, k}, 1, DType::f32);
      const Tensor b = random_tensor(tb ? Shape{n, k} : Shape{k, n}, 2, DType::f32);
      const MatmulOptions options{.transpose_a = ta, .transpose_b = tb};
      const Tensor y = matmul(a, b, options);
      const float *pa = a.data<float>(), *pb = b.data<float>(), *py = y.data<float>();
      const auto expected = [&](std::int64_t i, std::int64_t j) {
        double sum = 0;
        for (std::int64_t p = 0; p < k; ++p) {
          sum +=
              static_cast<double>(pa[ta ? p * m + i : i * k + p]) * pb[tb ? j * k + p : p * n + j];
        }
        return sum;
      };
      for (std::int64_t j = 0; j < n; j += 37)
        CHECK(std::abs(py[777 * n + j] - expected(777, j)) < 1e-4);
      for (std::int64_t i = 0; i < m; i += 37)
        CHECK(std::abs(py[i * n + n - 1] - expected(i, n - 1)) < 1e-4);
      const int before = num_threads();
      set_num_threads(before == 1 ? 3 : 1);
      CHECK(same_bits(matmul(a, b, options), y));
      set_num_threads(before);
    }
  }
}

}  // namespace
}  // namespace norma::test
