#include "core/ops/rope.h"

#include <cmath>

#include "tests/support/op_case.h"

namespace norma::test {
namespace {

std::vector<double> naive(const Tensor& x, const RopeOptions& o) {
  const std::int64_t length = x.shape()[1], heads = x.shape()[2], width = x.shape()[3];
  const auto v = x.to_vector();
  std::vector<double> y(v.size());
  for (std::int64_t r = 0; r < x.numel() / std::max<std::int64_t>(1, width); ++r) {
    const double position = static_cast<double>(r / heads % length + o.offset);
    for (std::int64_t i = 0; i < width / 2; ++i) {
      const double angle = position * std::pow(o.base, -2.0 * double(i) / double(width));
      const bool half = o.layout == RopeLayout::half;
      const auto a = static_cast<std::size_t>(r * width + (half ? i : 2 * i));
      const auto b = static_cast<std::size_t>(r * width + (half ? i + width / 2 : 2 * i + 1));
      y[a] = v[a] * std::cos(angle) - v[b] * std::sin(angle);
      y[b] = v[b] * std::cos(angle) + v[a] * std::sin(angle);
    }
  }
  return y;
}

OpCase rope_case(const RopeOptions& options) {
  return {.run = [=](const auto& in) { return rope(in[0], options); },
          .reference = [=](const auto& in) { return naive(in[0], options); },
          .samples =
              {{{1, 3, 2, 2}}, {{2, 5, 1, 6}}, {{1, 4, 2, 70}}, {{0, 2, 1, 4}}, {{9, 70, 4, 32}}},
          .errors = {{[=] {
                        (void)rope(Tensor::zeros({1, 2, 1, 3}), options);
                      },
                      "rope: the width of a head must be even; got 3 in x (1, 2, 1, 3)"},
                     {[=] {
                        (void)rope(Tensor::zeros({2, 4}), options);
                      },
                      "rope: expected a floating x (B, T, H, D); got (2, 4)"},
                     {[=] {
                        (void)rope(Tensor::zeros({1, 2, 1, 4}), {.base = 0});
                      },
                      "rope: base must be above 0; got 0"}}};
}

NORMA_OP_CASE(rope, half) { return rope_case({}); }
NORMA_OP_CASE(rope, interleaved) {
  return rope_case({.base = 500, .layout = RopeLayout::interleaved, .offset = 3});
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

TEST_CASE(
    "rope: raiyanyahya/how-to-train-your-gpt#6, the pairs of the rotation are those of the "
    "frequencies") {
  const Tensor v = Tensor::from({1, 1, 1, 4}, {1, 2, 3, 4});
  CHECK(compare(rope(v, {.layout = RopeLayout::interleaved, .offset = 1}).to_vector(),
                {-1.142640, 1.922076, 2.959851, 4.029800}, 1e-6) == "");
  CHECK(compare(rope(v, {.layout = RopeLayout::half, .offset = 1}).to_vector(),
                {-1.984111, 1.959901, 2.462378, 4.019800}, 1e-6) == "");
  const Tensor q = random_tensor({1, 1, 1, 8}, 1), k = random_tensor({1, 1, 1, 8}, 2);
  for (const RopeLayout layout : {RopeLayout::half, RopeLayout::interleaved}) {
    const auto turned = [&](const Tensor& x, std::int64_t position) {
      return rope(x, {.layout = layout, .offset = position}).to_vector();
    };
    CHECK(turned(q, 0) == q.to_vector());
    CHECK(std::abs(dot(turned(q, 11), turned(q, 11)) - dot(q.to_vector(), q.to_vector())) < 1e-12);
    CHECK(std::abs(dot(turned(q, 5), turned(k, 2)) - dot(turned(q, 12), turned(k, 9))) < 1e-12);
  }
}

TEST_CASE("rope: huggingface/candle#3520, angles at far positions") {
  const auto turned = [](std::int64_t position) {
    return rope(Tensor::from({1, 1, 1, 2}, {1, 0}), {.offset = position}).to_vector();
  };
  CHECK(std::abs(turned(15962)[0] - -0.908016) < 1e-6);
  CHECK(compare(turned(100003), {0.984315, -0.176421}, 1e-6) == "");
  // bf16 keeps f32 angles: it could not tell position 257 from 256.
  const Tensor x = Tensor::from({1, 1, 1, 2}, {1, 0}, DType::bf16);
  CHECK(rope(x, {.offset = 257}).to_vector() != rope(x, {.offset = 256}).to_vector());
}

TEST_CASE("rope: a part of a text is turned as within the whole") {
  const Tensor x = random_tensor({1, 9, 2, 6}, 1);
  const auto whole = rope(x).to_vector();
  const std::vector<double> values = x.to_vector();
  const Tensor rest = Tensor::from({1, 4, 2, 6}, std::span(values).subspan(60), DType::f64);
  CHECK(rope(rest, {.offset = 5}).to_vector() ==
        std::vector<double>(whole.begin() + 60, whole.end()));
}

}  // namespace
}  // namespace norma::test
