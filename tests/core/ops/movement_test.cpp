#include "core/ops/movement.h"

#include <numeric>

#include "core/ops/arithmetic.h"
#include "core/ops/reduce.h"
#include "tests/support/op_case.h"

namespace norma::test {
namespace {

Tensor counted(const Shape& shape, DType dtype = DType::f32) {
  std::vector<double> v(static_cast<std::size_t>(shape.numel()));
  std::iota(v.begin(), v.end(), 0.0);
  return Tensor::from(shape, v, dtype);
}

// Element by element, through the indices.
std::vector<double> naive_permute(const Tensor& x, const std::vector<int>& axes) {
  const int rank = x.rank();
  const std::vector<double> v = x.to_vector();
  std::vector<std::int64_t> strides(static_cast<std::size_t>(rank), 1);
  for (int i = rank - 2; i >= 0; --i) {
    strides[static_cast<std::size_t>(i)] = strides[static_cast<std::size_t>(i) + 1] * x.size(i + 1);
  }
  std::vector<double> y(v.size());
  for (std::int64_t k = 0; k < x.numel(); ++k) {
    std::int64_t rest = k, from = 0;
    for (int i = rank - 1; i >= 0; --i) {
      const int axis = axes[static_cast<std::size_t>(i)];
      from += rest % x.size(axis) * strides[static_cast<std::size_t>(axis)];
      rest /= x.size(axis);
    }
    y[static_cast<std::size_t>(k)] = v[static_cast<std::size_t>(from)];
  }
  return y;
}

OpCase permute_case(const std::vector<int>& axes, std::vector<std::vector<Shape>> samples) {
  return {.run = [axes](const auto& in) { return permute(in[0], axes); },
          .reference = [axes](const auto& in) { return naive_permute(in[0], axes); },
          .samples = std::move(samples),
          .tolerance_f64 = 0,
          .tolerance_f32 = 1e-7};
}

NORMA_OP_CASE(reshape, split_axes) {
  return {.run =
              [](const auto& in) {
                return reshape(in[0], {in[0].numel() / 3, 3});
              },
          .reference = [](const auto& in) { return in[0].to_vector(); },
          .samples = {{{2, 6}}, {{3, 1, 5}}, {{0, 3}}},
          .errors = {{[] {
                        (void)reshape(Tensor::zeros({2, 3}), {7});
                      },
                      "reshape: shape (2, 3) has 6 elements; (7) has 7"}}};
}

NORMA_OP_CASE(permute, heads) {
  OpCase c = permute_case({0, 2, 1, 3},
                          {{{2, 3, 5, 4}}, {{3, 17, 2, 33}}, {{1, 4, 1, 2}}, {{0, 2, 3, 4}}});
  c.errors = {{[] {
                 (void)permute(Tensor::zeros({2, 3}), {0});
               },
               "permute: expected the 2 axes of (2, 3); got 1"},
              {[] {
                 (void)permute(Tensor::zeros({2, 3}), {0, 0});
               },
               "permute: axis 0 of shape (2, 3) is named twice"},
              {[] {
                 (void)permute(Tensor::zeros({2, 3}), {0, 2});
               },
               "permute: expected an axis in -2..1 for shape (2, 3); got 2"}};
  return c;
}
NORMA_OP_CASE(permute, matrix) { return permute_case({1, 0}, {{{3, 5}}, {{65, 33}}, {{1, 7}}}); }
NORMA_OP_CASE(permute, rotate) { return permute_case({2, 0, 1}, {{{2, 3, 4}}, {{5, 34, 33}}}); }
NORMA_OP_CASE(permute, rotate_back) {
  return permute_case({1, 2, 0}, {{{2, 3, 4}}, {{33, 5, 40}}});
}
NORMA_OP_CASE(permute, batch) { return permute_case({0, 2, 1}, {{{2, 3, 4}}, {{3, 40, 35}}}); }
NORMA_OP_CASE(permute, reverse) { return permute_case({3, 2, 1, 0}, {{{2, 3, 4, 5}}}); }

TEST_CASE("permute: every element type, and the identity") {
  for (DType t :
       {DType::f64, DType::f32, DType::bf16, DType::f16, DType::i32, DType::i64, DType::u8}) {
    CHECK(permute(counted({2, 3}, t), {1, 0}).to_vector() == std::vector<double>{0, 3, 1, 4, 2, 5});
    CHECK(permute(counted({2, 1, 3}, t), {2, 1, 0}).to_vector() ==
          std::vector<double>{0, 3, 1, 4, 2, 5});
  }
  const Tensor x = counted({2, 3});
  CHECK(permute(x, {0, -1}).same(x));
  CHECK(permute(Tensor::scalar(3), {}).item() == 3);
  CHECK(transpose(x).shape() == Shape{3, 2});
}

// Source of the kind: See pytorch/pytorch#115940, MinishLab/model2vec#341: views must give what
// copies give.
TEST_CASE("permute and slice: views and copies agree") {
  const Tensor x = slice(counted({5, 3}), 0, 1, 3);
  CHECK(transpose(x).to_vector() == transpose(x.clone()).to_vector());
  CHECK(transpose(x).to_vector() == std::vector<double>{3, 6, 4, 7, 5, 8});
}

TEST_CASE("reshape and flatten share memory") {
  const Tensor x = counted({2, 3, 4});
  CHECK(reshape(x, {6, 4}).raw() == x.raw());
  CHECK(flatten(x, 1).shape() == Shape{2, 12});
  CHECK(flatten(x).shape() == Shape{24});
  CHECK(flatten(x, 0, 1).shape() == Shape{6, 4});
  CHECK(reshape(x, x.shape()).same(x));
  NORMA_CHECK_ERROR(flatten(x, 2, 1), "flatten: expected first <= last; got axes 2 and 1");
}

NORMA_OP_CASE(concatenate, middle_axis) {
  return {.run =
              [](const auto& in) {
                return concatenate({in[0], in[1], in[0]}, 1);
              },
          .reference =
              [](const auto& in) {
                std::vector<double> y;
                for (std::int64_t r = 0; r < in[0].size(0); ++r) {
                  for (int k : {0, 1, 0}) {
                    const Tensor& x = in[static_cast<std::size_t>(k)];
                    const auto v = x.to_vector();
                    const std::int64_t n = x.size(1) * x.size(2);
                    y.insert(y.end(), v.begin() + r * n, v.begin() + (r + 1) * n);
                  }
                }
                return y;
              },
          .samples = {{{2, 3, 4}, {2, 1, 4}}, {{1, 2, 2}, {1, 0, 2}}, {{300, 7, 9}, {300, 5, 9}}},
          .tolerance_f64 = 0,
          .errors =
              {{[] {
                  (void)concatenate({Tensor::zeros({2, 3}), Tensor::zeros({3, 3})}, 1);
                },
                "concatenate: expected f32 of (2, 3) but for axis 1; got f32 of (3, 3)"},
               {[] {
                  (void)concatenate({Tensor::zeros({2, 3}), Tensor::zeros({2, 3}, DType::f64)}, 1);
                },
                "got f64 of (2, 3)"},
               {[] { (void)concatenate(std::span<const Tensor>{}, 0); },
                "concatenate: expected at least one tensor"}}};
}

OpCase slice_case(int axis, std::int64_t start, std::int64_t stop,
                  std::vector<std::vector<Shape>> samples) {
  return {.run = [=](const auto& in) { return slice(in[0], axis, start, stop); },
          .reference =
              [=](const auto& in) {
                const AxisSplit s = split_at(in[0].shape(), axis);
                const auto x = in[0].to_vector();
                std::vector<double> y;
                for (std::int64_t o = 0; o < s.outer; ++o) {
                  for (std::int64_t k = start; k < stop; ++k) {
                    const auto first = x.begin() + (o * s.n + k) * s.inner;
                    y.insert(y.end(), first, first + s.inner);
                  }
                }
                return y;
              },
          .samples = std::move(samples),
          .tolerance_f64 = 0};
}

NORMA_OP_CASE(slice, leading) {
  OpCase c = slice_case(0, 1, 3, {{{4, 3}}, {{3}}, {{5, 0}}});
  c.errors = {{[] {
                 (void)slice(Tensor::zeros({4, 3}), 0, 2, 5);
               },
               "slice: expected 0 <= start <= stop <= 4 along axis 0 of (4, 3); got 2 and 5"},
              {[] {
                 (void)slice(Tensor::zeros({4, 3}), 0, 3, 2);
               },
               "got 3 and 2"},
              {[] {
                 (void)slice(Tensor::zeros({4, 3}), 2, 0, 1);
               },
               "slice: expected an axis in -2..1 for shape (4, 3); got 2"}};
  return c;
}
NORMA_OP_CASE(slice, inner) { return slice_case(1, 2, 5, {{{2, 6, 3}}, {{300, 7, 33}}}); }
NORMA_OP_CASE(slice, nothing) { return slice_case(1, 2, 2, {{{2, 6}}}); }
// Three slices of one tensor: the second and third add to a gradient that stands.
NORMA_OP_CASE(slice, three_of_one) {
  return {.run =
              [](const auto& in) {
                const auto p = split(in[0], -1, {1, 2, 2});
                return concatenate({mul(p[1], p[2]), p[0], p[1]}, -1);
              },
          .samples = {{{3, 5}}, {{70, 2, 5}}}};
}
NORMA_OP_CASE(pad, both_sides) {
  return {.run = [](const auto& in) { return pad(in[0], 1, 2, 1); },
          .reference =
              [](const auto& in) {
                const auto x = in[0].to_vector();
                const std::int64_t n = in[0].size(1);
                std::vector<double> y;
                for (std::int64_t r = 0; r < in[0].size(0); ++r) {
                  y.insert(y.end(), 2, 0.0);
                  y.insert(y.end(), x.begin() + r * n, x.begin() + (r + 1) * n);
                  y.insert(y.end(), 1, 0.0);
                }
                return y;
              },
          .samples = {{{2, 3}}, {{3, 0}}, {{40, 33}}},
          .errors = {{[] { (void)pad(Tensor::zeros({2}), 0, -1, 0); },
                      "pad: expected widths of at least 0; got -1 and 0"}}};
}

TEST_CASE("slice: shares memory along the leading axis, counts from the end") {
  const Tensor x = counted({4, 3});
  CHECK(slice(x, 0, 1, 3).raw() == x.raw() + 3 * 4);
  CHECK(slice(x, 0, -2, -1).to_vector() == std::vector<double>{6, 7, 8});
  CHECK(slice(x, 1, -1, 3).to_vector() == std::vector<double>{2, 5, 8, 11});
  CHECK(slice(reshape(x, {1, 4, 3}), 1, 1, 2).raw() == x.raw() + 3 * 4);
  CHECK(slice(x, 1, 0, 3).same(x));
  NORMA_CHECK_ERROR(split(x, 0, {1, 2}),
                    "split: expected sizes that add up to 4, axis 0 of (4, 3); got 3");
}

TEST_CASE("slice: half types have a gradient too") {
  Tensor x = counted({3, 4}, DType::bf16).set_requires_grad();
  sum(mul_scalar(slice(x, 1, 1, 3), 2.0)).backward();
  CHECK(x.grad().to_vector() == std::vector<double>{0, 2, 2, 0, 0, 2, 2, 0, 0, 2, 2, 0});
}

TEST_CASE("repeat: whole axes and single elements") {
  const Tensor x = counted({2, 2});
  CHECK(repeat(x, 1, 2).to_vector() == std::vector<double>{0, 1, 0, 1, 2, 3, 2, 3});
  CHECK(repeat_interleave(x, 1, 2).to_vector() == std::vector<double>{0, 0, 1, 1, 2, 2, 3, 3});
  CHECK(repeat(x, 0, 2).to_vector() == std::vector<double>{0, 1, 2, 3, 0, 1, 2, 3});
  CHECK(repeat_interleave(x, 0, 2).to_vector() == std::vector<double>{0, 1, 0, 1, 2, 3, 2, 3});
  Tensor w = x.clone().set_requires_grad();
  sum(repeat_interleave(w, 0, 3)).backward();
  CHECK(w.grad().to_vector() == std::vector<double>{3, 3, 3, 3});
}

}  // namespace
}  // namespace norma::test
