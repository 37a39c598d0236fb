#include "core/ops/attention.h"

#include <cmath>
#include <limits>

#include "core/kernels/attention.h"
#include "tests/core/ops/attention_reference.h"
#include "tests/support/op_case.h"

namespace norma::test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

OpCase attention_case(const AttentionOptions& options, std::vector<std::vector<Shape>> samples) {
  return {.run =
              [=](const auto& in) {
                AttentionOptions o = options;
                if (in.size() > 3) o.bias = in[3];
                return attention(in[0], in[1], in[2], o);
              },
          .reference = [=](const auto& in) { return naive_attention(in, options); },
          .samples = std::move(samples),
          .low = -1.5,
          .high = 1.5};
}

std::vector<Shape> shapes(std::int64_t batch, std::int64_t queries, std::int64_t keys,
                          std::int64_t heads, std::int64_t kv_heads, std::int64_t width) {
  return {{batch, queries, heads, width},
          {batch, keys, kv_heads, width},
          {batch, keys, kv_heads, width}};
}
std::vector<Shape> with_bias(std::vector<Shape> s) {
  s.push_back({s[0][2], s[0][1], s[1][1]});
  return s;
}

NORMA_OP_CASE(attention, plain) {
  OpCase row = attention_case(
      {}, {shapes(2, 3, 3, 2, 2, 4), shapes(1, 5, 7, 2, 1, 3), shapes(2, 37, 19, 4, 2, 17),
           shapes(1, 2, 0, 1, 1, 2), shapes(0, 2, 2, 1, 1, 2), shapes(4, 40, 64, 4, 2, 32)});
  const Tensor q = Tensor::zeros({1, 2, 3, 4}), k = Tensor::zeros({1, 5, 3, 4});
  row.errors = {
      {[=] {
         (void)attention(q, k, Tensor::zeros({1, 6, 3, 4}));
       },
       "attention: expected q (B, T, H, D), and k and v (B, S, H', D); got q (1, 2, 3, 4), k (1, "
       "5, "
       "3, 4), v (1, 6, 3, 4)"},
      {[=] {
         (void)attention(q, Tensor::zeros({1, 5, 2, 4}), Tensor::zeros({1, 5, 2, 4}));
       },
       "attention: the 2 kv heads must divide the 3 heads"},
      {[=] {
         (void)attention(q, Tensor::zeros({1, 5, 0, 4}), Tensor::zeros({1, 5, 0, 4}));
       },
       "attention: the 0 kv heads must divide the 3 heads"},
      // pytorch/pytorch#114083: a float mask of 0 and 1 is refused.
      {[=] {
         (void)attention(q, k, k, {.mask = Tensor::ones({1, 5})});
       },
       "attention: mask must have shape (1, 5), (1, 2, 5) or (1, 2, 5) and type u8 (1: the key "
       "counts); got (1, 5) of f32; what is added to the logits goes into bias"},
      // (T, S) would be (B, S) where T = B.
      {[=] {
         (void)attention(q, k, k, {.mask = Tensor::ones({2, 5}, DType::u8)});
       },
       "attention: mask must have shape (1, 5), (1, 2, 5) or (1, 2, 5) and type u8 (1: the key "
       "counts); got (2, 5) of u8"},
      {[=] {
         (void)attention(q, k, k, {.bias = Tensor::ones({2, 5})});
       },
       "attention: bias must have shape (3, 2, 5) and the type of q; got (2, 5) of f32"},
      {[=] { (void)attention(q, k, k, {.dropout = 1.5}); },
       "attention: dropout must lie in [0, 1]; got 1.5"},
      {[=] { (void)attention(q, k, k, {.window = -1}); },
       "attention: window must be at least 0; got -1"}};
  return row;
}

NORMA_OP_CASE(attention, causal) {
  return attention_case({.causal = true}, {shapes(2, 4, 4, 2, 1, 2), shapes(1, 24, 24, 8, 2, 16),
                                           shapes(1, 3, 9, 1, 1, 5), shapes(1, 9, 3, 1, 1, 5),
                                           shapes(1, 300, 300, 2, 2, 8)});
}

NORMA_OP_CASE(attention, window_and_cap) {
  return attention_case({.scale = -0.7, .softcap = 0.8, .window = 3},
                        {shapes(1, 5, 5, 2, 1, 2), shapes(1, 40, 45, 2, 2, 9)});
}

NORMA_OP_CASE(attention, bias) {
  return attention_case({.causal = true, .window = 6}, {with_bias(shapes(2, 3, 3, 2, 1, 2)),
                                                        with_bias(shapes(3, 35, 50, 4, 2, 8))});
}

NORMA_OP_CASE(attention, mask) {
  // The second sample sees no key at all.
  std::vector<double> mask(2 * 21, 0.0);
  for (std::size_t j = 0; j < 21; ++j) mask[j] = j % 3 == 1 ? 0 : 1;
  return attention_case({.mask = Tensor::from({2, 21}, mask, DType::u8)},
                        {shapes(2, 4, 21, 2, 1, 3), with_bias(shapes(2, 21, 21, 2, 2, 16))});
}

// Pairs drawn at random, a query that sees nothing among them.
Tensor random_pairs(const Shape& shape) {
  std::vector<double> pairs = random_tensor(shape, 11).to_vector();
  for (double& p : pairs) p = p > -0.3 ? 1 : 0;
  std::fill_n(pairs.begin() + shape[2], shape[2], 0.0);
  return Tensor::from(shape, pairs, DType::u8);
}

NORMA_OP_CASE(attention, mask_of_pairs) {
  return attention_case({.mask = random_pairs({2, 37, 45})},
                        {shapes(2, 37, 45, 4, 2, 5), shapes(2, 37, 45, 2, 1, 17)});
}

NORMA_OP_CASE(attention, mask_of_pairs_for_all_samples) {
  return attention_case(
      {.softcap = 2, .causal = true, .window = 9, .mask = random_pairs({1, 21, 300})},
      {shapes(3, 21, 300, 2, 2, 4), with_bias(shapes(2, 21, 300, 2, 1, 3))});
}

NORMA_OP_CASE(attention, dropout) {
  OpCase row = attention_case({.causal = true, .dropout = 0.3, .dropout_key = {1, 2}},
                              {shapes(2, 3, 3, 2, 1, 2), shapes(2, 33, 270, 2, 1, 8)});
  row.reference = nullptr;  // its composed form draws the same numbers
  return row;
}

// Rows that begin within a block of four random numbers.
NORMA_OP_CASE(attention, window_and_dropout) {
  OpCase row = attention_case({.window = 3, .dropout = 0.3, .dropout_key = {1, 2}},
                              {shapes(2, 13, 13, 2, 2, 8), shapes(1, 13, 26, 2, 1, 3)});
  row.reference = nullptr;
  return row;
}

// Golden values: torch 2.13.0, scaled_dot_product_attention with is_causal and enable_gqa.
TEST_CASE("attention: as torch") {
  std::vector<double> q(12), k(6), v(6), dy(12);
  for (std::size_t i = 0; i < 12; ++i) q[i] = std::sin(double(i)), dy[i] = double(i + 1) / 10;
  for (std::size_t i = 0; i < 6; ++i) k[i] = std::cos(double(i)), v[i] = std::sin(2 + double(i));
  Tensor tq = Tensor::from({1, 3, 2, 2}, q, DType::f64).set_requires_grad();
  Tensor tk = Tensor::from({1, 3, 1, 2}, k, DType::f64).set_requires_grad();
  Tensor tv = Tensor::from({1, 3, 1, 2}, v, DType::f64).set_requires_grad();
  const Tensor y = attention(tq, tk, tv, {.causal = true});
  backward(y, Tensor::from({1, 3, 2, 2}, dy, DType::f64));
  CHECK(
      compare(y.to_vector(),
              {0.9092974268256817, 0.1411200080598672, 0.9092974268256817, 0.1411200080598672,
               -0.5195445380454106, -0.8022744507540525, 0.25308744202025807, -0.2921433469534034,
               0.4235625278112007, 0.06856971650690168, -0.42788233603384906, -0.38903644838240864},
              1e-12) == "");
  CHECK(compare(tq.grad().to_vector(),
                {0, 0, 0, 0, 0.1825905317021112, 0.19730817061668066, 0.4891910738389924,
                 0.528622130410638, 0.3351204111439786, 0.3529947288950967, 0.1880062553412257,
                 0.6194037197449965},
                1e-12) == "");
  CHECK(compare(tk.grad().to_vector(),
                {-0.05800556896386688, 0.022047824291562657, 0.21188822453228395,
                 0.25241244774698585, -0.15388265556841696, -0.27446027203854845},
                1e-12) == "");
  CHECK(compare(tv.grad().to_vector(),
                {1.6156070344571938, 1.967812841030154, 1.5143972457719497, 1.7159957418874785,
                 0.46999571977085675, 0.5161914170823674},
                1e-12) == "");
}

TEST_CASE("attention: pytorch/pytorch#114083, one meaning of masks on every path") {
  const Tensor q = Tensor::zeros({1, 2, 1, 1}), k = Tensor::zeros({1, 2, 1, 1});
  const Tensor v = Tensor::from({1, 2, 1, 1}, {10, 20});
  CHECK(attention(q, k, v).to_vector() == std::vector<double>{15, 15});
  // 1 counts.
  const Tensor first = Tensor::from({1, 2}, {1, 0}, DType::u8);
  CHECK(attention(q, k, v, {.mask = first}).to_vector() == std::vector<double>{10, 10});
  const Tensor pairs = Tensor::from({1, 2, 2}, {1, 0, 0, 1}, DType::u8);
  CHECK(attention(q, k, v, {.mask = pairs}).to_vector() == std::vector<double>{10, 20});
  // The identity, as a bias of 0 and -inf.
  const Tensor identity = Tensor::from({1, 2, 2}, {0, -kInf, -kInf, 0});
  CHECK(attention(q, k, v, {.bias = identity}).to_vector() == std::vector<double>{10, 20});
  CHECK(attention(q, k, v, {.window = 1}).to_vector() == std::vector<double>{10, 20});
  CHECK(attention(q, k, v, {.causal = true}).to_vector() == std::vector<double>{10, 15});
}

TEST_CASE("attention: a query that sees nothing gives 0 with gradient 0") {
  for (std::int64_t keys : {1, 40}) {
    Tensor q = random_tensor({1, 3, 2, 4}, 1).set_requires_grad();
    Tensor k = random_tensor({1, keys, 2, 4}, 2).set_requires_grad();
    Tensor v = random_tensor({1, keys, 2, 4}, 3).set_requires_grad();
    const Tensor nothing = Tensor::full({2, 3, keys}, -kInf, DType::f64);
    for (const AttentionOptions& o :
         {AttentionOptions{.bias = nothing},
          AttentionOptions{.mask = Tensor::zeros({1, keys}, DType::u8)},
          AttentionOptions{.mask = Tensor::zeros({1, 3, keys}, DType::u8)}}) {
      for (Tensor* t : {&q, &k, &v}) t->clear_grad();
      const Tensor y = attention(q, k, v, o);
      backward(y, random_tensor(y.shape(), 4));
      for (const Tensor& t : {y, q.grad(), k.grad(), v.grad()}) {
        for (double x : t.to_vector()) CHECK(x == 0);
      }
    }
  }
}

TEST_CASE("attention: a NaN stays visible") {
  const Tensor q = Tensor::full({1, 1, 1, 2}, std::numeric_limits<double>::quiet_NaN());
  for (std::int64_t keys : {1, 5, 30}) {
    const Tensor k = Tensor::ones({1, keys, 1, 2});
    for (double y : attention(q, k, k).to_vector()) CHECK(std::isnan(y));
  }
}

TEST_CASE("attention: a NaN among a head's logits is its largest one") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto largest = [](const Tensor& q, const Tensor& k, std::int64_t window) {
    Tensor of_heads;
    AttentionOptions options;
    options.window = window;
    options.largest_logit = &of_heads;
    (void)attention(q, k, k, options);
    return of_heads.to_vector();
  };
  // Two samples, 40 queries and keys, two heads; the NaN is in a query or a key of the second head.
  const Shape shape{2, 40, 2, 1};
  for (const std::int64_t sample : {0, 1}) {
    for (const std::int64_t position : {0, 17, 39}) {
      std::vector<double> values(160, 2);
      values[static_cast<std::size_t>((sample * 40 + position) * 2 + 1)] = nan;
      const Tensor some = Tensor::from(shape, values), twos = Tensor::full(shape, 2);
      for (const auto& heads : {largest(some, twos, 0), largest(twos, some, 0)}) {
        INFO(sample << " " << position);
        CHECK(heads[0] == 4);
        CHECK(std::isnan(heads[1]));
      }
      // The last query alone sees the last key alone.
      const Tensor last = Tensor::full({2, 1, 2, 1}, 2);
      const auto seen = largest(last, some, 1);
      CHECK(seen[0] == 4);
      CHECK((position == 39 ? std::isnan(seen[1]) : seen[1] == 4));
    }
  }
}

TEST_CASE("attention: huge logits do not overflow") {
  const Tensor q = Tensor::from({1, 1, 1, 1}, {1e4}), k = Tensor::from({1, 2, 1, 1}, {1, 2});
  const Tensor v = Tensor::from({1, 2, 1, 1}, {10, 20});
  CHECK(attention(q, k, v).to_vector() == std::vector<double>{20});
}

// Two keys, of which the second has weight s(x), s the logistic function.
TEST_CASE("attention: weights have small relative error in f32") {
  constexpr std::int64_t kPoints = 20001;
  Tensor k = Tensor::zeros({kPoints, 2, 1, 1}), v = Tensor::zeros({kPoints, 2, 1, 1});
  for (std::int64_t i = 0; i < kPoints; ++i) {
    k.mutable_data<float>()[2 * i + 1] =
        static_cast<float>(-1.5 * static_cast<double>(i) / kPoints);
    v.mutable_data<float>()[2 * i + 1] = 1;
  }
  const Tensor y = attention(Tensor::ones({kPoints, 1, 1, 1}), k, v);
  double worst = 0;
  for (std::int64_t i = 0; i < kPoints; ++i) {
    const double expected = 1 / (1 + std::exp(-static_cast<double>(k.data<float>()[2 * i + 1])));
    worst = std::max(worst, std::abs(y.data<float>()[i] / expected - 1));
  }
  CHECK(worst < 2.8e-7);
}

TEST_CASE("attention: the largest logit of each head") {
  const Tensor q = Tensor::from({2, 1, 2, 1}, {1, 2, 3, -4});
  const Tensor k = Tensor::from({2, 2, 1, 1}, {1, 2, 5, 7});
  Tensor largest;
  (void)attention(q, k, k, {.largest_logit = &largest});
  CHECK(compare(largest.to_vector(), {21, 4}, 1e-6) == "");
  const Tensor mask = Tensor::from({2, 2}, {1, 1, 1, 0}, DType::u8);
  (void)attention(q, k, k, {.mask = mask, .largest_logit = &largest});
  CHECK(compare(largest.to_vector(), {15, 4}, 1e-6) == "");
}

TEST_CASE("attention: dropout drops weights at its rate, and all of them at 1") {
  kernels::AttentionShape s;
  s.batch = 2, s.heads = 2, s.queries = 100, s.keys = 270;
  s.dropout = 0.3;
  s.dropout_key = {7, 8};
  std::vector<double> factors(static_cast<std::size_t>(2 * 2 * 100 * 270));
  kernels::attention_dropout(s, factors.data());
  double mean = 0;
  bool two_values = true;
  for (double f : factors) {
    two_values = two_values && (f == 0 || std::abs(f - 1 / 0.7) < 1e-12);
    mean += f / double(factors.size());
  }
  CHECK(two_values);
  CHECK(std::abs(mean - 1) < 0.01);
  const Tensor q = random_tensor({1, 3, 1, 4}, 1, DType::f32);
  for (double y : attention(q, q, q, {.dropout = 1}).to_vector()) CHECK(y == 0);
  CHECK(same_bits(attention(q, q, q, {.dropout = 0, .dropout_key = {1, 2}}), attention(q, q, q)));
}

TEST_CASE("attention: half types are computed in f32 and rounded once") {
  const Tensor q = random_tensor({1, 5, 2, 8}, 1, DType::bf16);
  const Tensor wide = Tensor::from(q.shape(), q.to_vector());
  const Tensor y = attention(wide, wide, wide, {.causal = true});
  CHECK(same_bits(attention(q, q, q, {.causal = true}),
                  Tensor::from(q.shape(), y.to_vector(), DType::bf16)));
}

}  // namespace
}  // namespace norma::test
