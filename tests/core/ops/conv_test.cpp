#include "core/ops/conv.h"

#include "core/ops/cast.h"
#include "tests/support/op_case.h"

namespace norma::test {
namespace {

std::vector<double> naive(const std::vector<Tensor>& in, const Conv2dOptions& o) {
  const Tensor &x = in[0], &w = in[1];
  const auto vx = x.to_vector(), vw = w.to_vector();
  const std::int64_t outs = w.size(0), part = w.size(1), kh = w.size(2), kw = w.size(3);
  const std::int64_t h = x.size(2), wd = x.size(3);
  const std::int64_t oh = (h + 2 * o.padding.h - o.dilation.h * (kh - 1) - 1) / o.stride.h + 1;
  const std::int64_t ow = (wd + 2 * o.padding.w - o.dilation.w * (kw - 1) - 1) / o.stride.w + 1;
  std::vector<double> y;
  for (std::int64_t n = 0; n < x.size(0); ++n) {
    for (std::int64_t c = 0; c < outs; ++c) {
      const std::int64_t first = c / (outs / o.groups) * part;
      for (std::int64_t i = 0; i < oh; ++i) {
        for (std::int64_t j = 0; j < ow; ++j) {
          double sum = in.size() > 2 ? in[2].to_vector()[static_cast<std::size_t>(c)] : 0.0;
          for (std::int64_t d = 0; d < part; ++d) {
            for (std::int64_t a = 0; a < kh; ++a) {
              for (std::int64_t b = 0; b < kw; ++b) {
                const std::int64_t r = i * o.stride.h + a * o.dilation.h - o.padding.h;
                const std::int64_t s = j * o.stride.w + b * o.dilation.w - o.padding.w;
                if (r < 0 || r >= h || s < 0 || s >= wd) continue;
                sum +=
                    vx[static_cast<std::size_t>(((n * x.size(1) + first + d) * h + r) * wd + s)] *
                    vw[static_cast<std::size_t>(((c * part + d) * kh + a) * kw + b)];
              }
            }
          }
          y.push_back(sum);
        }
      }
    }
  }
  return y;
}

OpCase row(Conv2dOptions options, std::vector<std::vector<Shape>> samples) {
  OpCase c;
  c.run = [=](const std::vector<Tensor>& x) {
    return conv2d(x[0], x[1], x.size() > 2 ? x[2] : Tensor(), options);
  };
  c.reference = [=](const std::vector<Tensor>& x) { return naive(x, options); };
  c.samples = std::move(samples);
  c.tolerance_f32 = 1e-5;
  return c;
}

NORMA_OP_CASE(conv2d, plain) {
  OpCase c = row({}, {{{2, 3, 5, 6}, {4, 3, 3, 2}, {4}},
                      {{1, 1, 3, 3}, {1, 1, 3, 3}},
                      {{0, 2, 4, 4}, {3, 2, 3, 3}, {3}},
                      {{0, 16, 9, 9}, {16, 16, 3, 3}, {16}},
                      {{3, 5, 4, 7}, {6, 5, 1, 1}, {6}}});
  const Tensor x = Tensor::ones({1, 4, 3, 3});
  c.errors = {
      {[] {
         (void)conv2d(Tensor::ones({1, 1, 3, 3}), Tensor::ones({2, 1, 5, 5}));
       },
       "conv2d: the kernel must not reach over more than the padded input; got kernel (5, 5) with "
       "dilation (1, 1) on an input of (3, 3) with padding (0, 0)"},
      {[=] {
         (void)conv2d(x, Tensor::ones({2, 3, 1, 1}));
       },
       "conv2d: weight must have shape (outputs, 4, height, width), for x (1, 4, 3, 3) and groups "
       "1; got (2, 3, 1, 1)"},
      {[=] {
         (void)conv2d(x, Tensor::ones({2, 4, 1, 1}), Tensor::ones({3}));
       },
       "conv2d: bias must have shape (2), for weight (2, 4, 1, 1); got (3)"},
      {[=] {
         (void)conv2d(x, Tensor::ones({2, 4, 1, 1}), {}, {.groups = 3});
       },
       "conv2d: groups must divide the channels of x (1, 4, 3, 3); got 3"},
      {[=] {
         (void)conv2d(x, Tensor::ones({3, 2, 1, 1}), {}, {.groups = 2});
       },
       "conv2d: groups must divide the outputs of weight (3, 2, 1, 1); got 2"},
      {[=] {
         (void)conv2d(x, Tensor::ones({2, 4, 1, 1}), {}, {.stride = 0});
       },
       "conv2d: stride must be at least 1; got (0, 0)"},
      {[=] {
         (void)conv2d(x, Tensor::ones({2, 4, 1, 1}), {}, {.padding = {0, -1}});
       },
       "conv2d: padding must be at least 0; got (0, -1)"},
      {[] {
         (void)conv2d(Tensor::ones({1, 3, 3}), Tensor::ones({2, 4, 1, 1}));
       },
       "conv2d: x must have the axes (samples, channels, height, width); got (1, 3, 3)"},
      {[=] {
         (void)conv2d(x, Tensor::ones({2, 4, 1, 1}, DType::f64));
       },
       "conv2d: x, weight and bias must have one floating type; got f32, f64 and no bias"},
  };
  return c;
}
NORMA_OP_CASE(conv2d, padding) {
  return row({.padding = {2, 1}},
             {{{2, 2, 4, 5}, {3, 2, 3, 3}, {3}}, {{2, 1, 1, 1}, {2, 1, 2, 3}}});
}
NORMA_OP_CASE(conv2d, stride) {
  return row({.stride = {2, 3}, .padding = 1}, {{{2, 2, 6, 8}, {3, 2, 3, 3}, {3}}});
}
NORMA_OP_CASE(conv2d, dilation) {
  return row({.stride = 2, .padding = 2, .dilation = {2, 3}}, {{{2, 2, 7, 9}, {3, 2, 3, 3}}});
}
NORMA_OP_CASE(conv2d, groups) {
  return row({.padding = 1, .groups = 2}, {{{2, 4, 5, 5}, {6, 2, 3, 3}, {6}}});
}
NORMA_OP_CASE(conv2d, many_channels) {
  // Sizes that take the transform, with odd heights and widths.
  return row({.padding = 1},
             {{{2, 17, 5, 7}, {18, 17, 3, 3}, {18}}, {{1, 16, 1, 1}, {16, 16, 3, 3}}});
}
NORMA_OP_CASE(conv2d, many_channels_unpadded) { return row({}, {{{2, 16, 6, 9}, {16, 16, 3, 3}}}); }
NORMA_OP_CASE(conv2d, many_channels_wide_padding) {
  return row({.padding = {2, 0}}, {{{1, 16, 4, 5}, {19, 16, 3, 3}}});
}
NORMA_OP_CASE(conv2d, depthwise) {
  return row({.padding = 1, .groups = 3},
             {{{2, 3, 5, 6}, {3, 1, 3, 3}, {3}}, {{2, 3, 4, 20}, {6, 1, 3, 5}}});
}
NORMA_OP_CASE(conv2d, depthwise_strided) {
  return row({.stride = {2, 3}, .padding = {3, 0}, .dilation = {1, 2}, .groups = 2},
             {{{2, 2, 7, 19}, {4, 1, 3, 3}, {4}}});
}

TEST_CASE("conv1d is conv2d of height one") {
  const Tensor x = random_tensor({2, 4, 9}, 1), w = random_tensor({6, 2, 3}, 2);
  const Tensor b = random_tensor({6}, 3);
  const Conv1dOptions options{.stride = 2, .padding = 1, .dilation = 2, .groups = 2};
  const auto f = [&](const std::vector<Tensor>& in) {
    return conv1d(in[0], in[1], in[2], options);
  };
  const Tensor y = f({x, w, b});
  CHECK(y.shape() == Shape{2, 6, 4});
  const std::vector<Tensor> flat{Tensor::from({2, 4, 1, 9}, x.to_vector(), DType::f64),
                                 Tensor::from({6, 2, 1, 3}, w.to_vector(), DType::f64), b};
  CHECK(compare(y.to_vector(),
                naive(flat, {.stride = {1, 2}, .padding = {0, 1}, .dilation = {1, 2}, .groups = 2}),
                1e-12) == "");
  CHECK(check_gradient(f, {x, w, b}) == "");
  CHECK(check_second_gradient(f, {x, w, b}) == "");
  NORMA_CHECK_ERROR(conv1d(x, random_tensor({6, 4, 30}, 4)),
                    "conv1d: the kernel must not reach over more than the padded input; got kernel "
                    "(1, 30) with dilation (1, 1) on an input of (1, 9) with padding (0, 0)");
  NORMA_CHECK_ERROR(conv1d(x, random_tensor({6, 3, 3}, 4)),
                    "conv1d: weight must have shape (outputs, 4, length), for x (2, 4, 9)");
}

// Fault mlpack/mlpack#2986, by hand: the stride leaves a column unread.
TEST_CASE("conv2d gives zero gradient to a border that no window reads") {
  Tensor x = Tensor::ones({1, 1, 6, 6}), w = Tensor::ones({1, 1, 3, 3});
  x.set_requires_grad();
  w.set_requires_grad();
  const Tensor y = conv2d(x, w, {}, {.stride = 2});
  CHECK(y.shape() == Shape{1, 1, 2, 2});
  CHECK(y.to_vector() == std::vector<double>(4, 9.0));
  backward(y, Tensor::ones({1, 1, 2, 2}));
  CHECK(x.grad().to_vector() == std::vector<double>{1, 1, 2, 1, 1, 0, 1, 1, 2, 1, 1, 0,
                                                    2, 2, 4, 2, 2, 0, 1, 1, 2, 1, 1, 0,
                                                    1, 1, 2, 1, 1, 0, 0, 0, 0, 0, 0, 0});
  CHECK(w.grad().to_vector() == std::vector<double>(9, 4.0));
}

TEST_CASE("conv2d adds into gradients that stand already, and sums over many samples") {
  for (const std::int64_t channels : {3, 16}) {
    const Tensor x0 = random_tensor({21, channels, 6, 5}, 1);
    Tensor x = x0.detach(), w = random_tensor({channels, channels, 3, 3}, 2);
    Tensor b = random_tensor({channels}, 3);
    for (Tensor* t : {&x, &w, &b}) t->set_requires_grad();
    const Tensor dy = random_tensor({21, channels, 6, 5}, 4);
    backward(conv2d(x, w, b, {.padding = 1}), dy);
    const auto dx = x.grad().to_vector(), dw = w.grad().to_vector(), db = b.grad().to_vector();
    backward(conv2d(x, w, b, {.padding = 1}), dy);
    const auto twice = [](std::vector<double> v) {
      for (double& e : v) e *= 2;
      return v;
    };
    CHECK(compare(x.grad().to_vector(), twice(dx), 1e-12) == "");
    CHECK(compare(w.grad().to_vector(), twice(dw), 1e-12) == "");
    CHECK(compare(b.grad().to_vector(), twice(db), 1e-12) == "");
  }
}

TEST_CASE("conv2d of half types rounds once") {
  const Tensor x = random_tensor({2, 3, 5, 5}, 1, DType::bf16);
  const Tensor w = random_tensor({4, 3, 3, 3}, 2, DType::bf16);
  CHECK(same_bits(conv2d(x, w), to(conv2d(to(x, DType::f32), to(w, DType::f32)), DType::bf16)));
}

}  // namespace
}  // namespace norma::test
