#include "core/ops/cross_entropy.h"

#include <cmath>
#include <limits>

#include "core/ops/arithmetic.h"
#include "core/random.h"
#include "tests/support/op_case.h"

namespace norma::test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Tensor ids(const Shape& shape, const std::vector<std::int64_t>& values) {
  return Tensor::from_ids(shape, values);
}

// Targets for the logits; with `ignore` every third one is -100.
Tensor targets_for(const Tensor& logits, bool ignore) {
  RandomStream stream(random_key(1, "test/targets"));
  const Shape shape = logits.shape().sub(0, logits.rank() - 1);
  std::vector<std::int64_t> v(static_cast<std::size_t>(shape.numel()));
  for (std::size_t k = 0; k < v.size(); ++k) {
    v[k] = stream.below(logits.size(-1));
    if (ignore && k % 3 == 1) v[k] = -100;
  }
  return ids(shape, v);
}

double naive(const Tensor& logits, const Tensor& targets, const CrossEntropyOptions& o, bool mean) {
  const auto x = logits.to_vector();
  const auto t = targets.to_ids();
  const auto cols = static_cast<std::size_t>(logits.size(-1));
  double sum = 0, count = 0;
  for (std::size_t r = 0; r < t.size(); ++r) {
    if (o.ignore && t[r] == *o.ignore) continue;
    double exps = 0, plain = 0;
    for (std::size_t c = 0; c < cols; ++c) {
      exps += std::exp(x[r * cols + c]);
      plain += x[r * cols + c];
    }
    const double z = std::log(exps);
    sum += (1 - o.label_smoothing) * (z - x[r * cols + static_cast<std::size_t>(t[r])]) +
           o.label_smoothing * (z - plain / static_cast<double>(cols)) + o.z_loss * z * z;
    ++count;
  }
  return mean && count > 0 ? sum / count : sum;
}

OpCase entropy_case(const CrossEntropyOptions& o) {
  return {
      .run =
          [o](const auto& in) {
            return cross_entropy(in[0], targets_for(in[0], o.ignore.has_value()), o);
          },
      .reference =
          [o](const auto& in) {
            return std::vector<double>{
                naive(in[0], targets_for(in[0], o.ignore.has_value()), o, true)};
          },
      .samples = {{{3, 4}}, {{5, 1}}, {{2, 3, 17}}, {{7}}, {{40, 65}}, {{3, 5000}}, {{400, 131}}},
      .low = -3,
      .high = 3};
}

NORMA_OP_CASE(cross_entropy, plain) {
  OpCase c = entropy_case({});
  // Source of the first three: PaddlePaddle/Paddle#10945.
  const Tensor x = Tensor::zeros({2, 5});
  c.errors = {
      {[=] {
         (void)cross_entropy(x, ids({2}, {0, 5}));
       },
       "cross_entropy: expected ids of at least 0 and less than 5; got 5 at position 1"},
      {[=] {
         (void)cross_entropy(x, ids({2}, {-1, 0}), {.ignore = -100});
       },
       "got -1 at position 0"},
      {[=] {
         (void)cross_entropy(x, ids({2}, {0, -4}), {.ignore = -100});
       },
       "got -4 at position 1"},
      {[=] {
         (void)cross_entropy(x, ids({3}, {0, 0, 0}));
       },
       "cross_entropy: expected targets of shape (2), that of the logits (2, 5) without the "
       "classes; got (3)"},
      {[=] {
         (void)cross_entropy(x, ids({2}, {0, 0}), {.label_smoothing = 1.5});
       },
       "cross_entropy: expected label_smoothing in 0..1; got 1.5"},
      {[=] {
         (void)cross_entropy(x, ids({2}, {0, 0}), {.z_loss = -1});
       },
       "cross_entropy: expected z_loss of at least 0; got -1"},
      {[=] { (void)cross_entropy(x, Tensor::zeros({2})); },
       "cross_entropy: expected ids of i64; got f32"}};
  return c;
}
NORMA_OP_CASE(cross_entropy, smoothed) { return entropy_case({.label_smoothing = 0.1}); }
NORMA_OP_CASE(cross_entropy, everything) {
  return entropy_case({.label_smoothing = 0.2, .z_loss = 0.01, .ignore = -100});
}
NORMA_OP_CASE(cross_entropy, sum) {
  const CrossEntropyOptions o{.z_loss = 0.1, .ignore = -100};
  OpCase c = entropy_case(o);
  c.run = [o](const auto& in) { return cross_entropy_sum(in[0], targets_for(in[0], true), o).sum; };
  c.reference = [o](const auto& in) {
    return std::vector<double>{naive(in[0], targets_for(in[0], true), o, false)};
  };
  return c;
}

// Golden values: torch 2.13.0; the z-loss as 0.01 * (logsumexp(x)^2).mean().
TEST_CASE("cross_entropy: as torch") {
  struct Row {
    CrossEntropyOptions options;
    double loss;
    std::vector<double> gradient;
  };
  const std::vector<Row> rows = {
      {{},
       0.5352404030498562,
       {0.3018744480743129, 0.015029443784787011, -0.3169038918590999, -0.03188022406174712,
        0.023306311288986945, 0.008573912772760194}},
      {{.label_smoothing = 0.1},
       0.6852404030498562,
       {0.28520778140764624, -0.001637222881879655, -0.28357055852576657, 0.001453109271586206,
        0.006639644622320279, -0.008092753893906473}},
      {{.ignore = 0},
       1.0045969023422834,
       {0.6037488961486258, 0.030058887569574023, -0.6338077837181998, 0, 0, 0}},
      {{.label_smoothing = 0.2, .ignore = 0},
       1.1379302356756167,
       {0.5370822294819592, -0.036607779097092646, -0.5004744503848665, 0, 0, 0}},
      {{.z_loss = 0.01},
       0.5935576827991407,
       {0.3109584352636909, 0.015481708876037371, -0.31139417511630535, -0.003176206340154645,
        0.024735400181724248, 0.009099645196004709}}};
  for (const Row& row : rows) {
    Tensor x = Tensor::from({2, 3}, {1, -2, 0.5, 3, 0, -1}, DType::f64).set_requires_grad();
    const Tensor loss = cross_entropy(x, ids({2}, {2, 0}), row.options);
    loss.backward();
    CHECK(compare(loss.to_vector(), {row.loss}, 1e-14) == "");
    CHECK(compare(x.grad().to_vector(), row.gradient, 1e-14) == "");
  }
}

// Source: pytorch/pytorch#70348.
TEST_CASE("cross_entropy: every target ignored gives 0 with gradient 0") {
  for (const CrossEntropyOptions& o :
       {CrossEntropyOptions{.ignore = -100},
        CrossEntropyOptions{.label_smoothing = 0.1, .z_loss = 0.1, .ignore = -100}}) {
    Tensor x = Tensor::from({1, 3}, {1, 2, 3}).set_requires_grad();
    const Tensor loss = cross_entropy(x, ids({1}, {-100}), o);
    CHECK(loss.item() == 0);
    loss.backward();
    CHECK(x.grad().to_vector() == std::vector<double>{0, 0, 0});
    CHECK(cross_entropy_sum(x, ids({1}, {-100}), o).count == 0);
  }
  CHECK(cross_entropy(Tensor::zeros({0, 3}), ids({0}, {})).item() == 0);
}

TEST_CASE("cross_entropy: two micro-batches, one of them ignored, give the other's mean") {
  const CrossEntropyOptions o{.ignore = -100};
  Tensor x = random_tensor({2, 5}, 1).set_requires_grad();
  const Tensor whole = cross_entropy(x, ids({2}, {1, 3}), o);
  whole.backward();
  const Tensor expected = x.grad().clone();
  x.clear_grad();
  const auto a = cross_entropy_sum(random_tensor({1, 5}, 2), ids({1}, {-100}), o);
  const auto b = cross_entropy_sum(x, ids({2}, {1, 3}), o);
  CHECK(a.count + b.count == 2);
  const Tensor mean = mul_scalar(add(a.sum, b.sum), 1.0 / 2);
  mean.backward();
  CHECK(compare(mean, whole, 1e-15) == "");
  CHECK(compare(x.grad(), expected, 1e-15) == "");
}

// Source: the chainer thread of PaddlePaddle/Paddle#10945: any integer may be the ignored one.
TEST_CASE("cross_entropy: the ignored value may lie at the number of classes") {
  const Tensor x = random_tensor({3, 4}, 1);
  const Tensor y = cross_entropy(x, ids({3}, {4, 1, 4}), {.ignore = 4});
  CHECK(y.item() == Approx(naive(x, ids({3}, {4, 1, 4}), {.ignore = 4}, true)));
}

// Source: pytorch/pytorch#11752.
TEST_CASE("cross_entropy: huge and -inf logits") {
  const auto loss = [](std::initializer_list<double> x, std::int64_t t) {
    return cross_entropy(Tensor::from({1, 2}, x), ids({1}, {t})).item();
  };
  CHECK(loss({1e8, 1e8}, 1) == Approx(std::log(2.0)).epsilon(1e-6));
  CHECK(loss({1e4, 0}, 0) == 0);
  CHECK(loss({1e4, 0}, 1) == 10000);
  CHECK(loss({-kInf, 0}, 1) == 0);
  CHECK(loss({-kInf, 0}, 0) == kInf);
  CHECK(loss({-kInf, -kInf}, 0) == kInf);
  CHECK(std::isnan(loss({kNan, 0}, 1)));
  CHECK(std::isnan(loss({kNan, -kInf}, 1)));
  CHECK(std::isnan(loss({kInf, 0}, 1)));
  Tensor x = Tensor::from({3, 2}, {1e8, 1e8, -kInf, 0, -kInf, -kInf}).set_requires_grad();
  cross_entropy_sum(x, ids({3}, {1, 1, 0})).sum.backward();
  CHECK(x.grad().to_vector() == std::vector<double>{0.5, -0.5, 0, 0, 0, 0});
}

TEST_CASE("cross_entropy: half logits, and a gradient that stands") {
  Tensor x = Tensor::zeros({2, 4}, DType::bf16).set_requires_grad();
  const Tensor y = cross_entropy(x, ids({2}, {0, 1}));
  CHECK(y.dtype() == DType::bf16);
  CHECK(y.item() == Approx(std::log(4.0)).epsilon(4e-3));
  y.backward();
  CHECK(x.grad().to_vector() ==
        std::vector<double>{-0.375, 0.125, 0.125, 0.125, 0.125, -0.375, 0.125, 0.125});
  Tensor w = random_tensor({5, 37}, 1, DType::f32).set_requires_grad();
  const Tensor t = targets_for(w, true);
  cross_entropy(w, t, {.ignore = -100}).backward();
  const Tensor once = w.grad().clone();
  cross_entropy(w, t, {.ignore = -100}).backward();
  CHECK(compare(w.grad(), mul_scalar(once, 2), 1e-7) == "");
}

// The loss over 20000 rows of equal logits is exact where a running f32 sum is not.
TEST_CASE("cross_entropy: the rows are summed in f64") {
  const Tensor x = Tensor::zeros({200000, 2});
  const auto s = cross_entropy_sum(x, ids({200000}, std::vector<std::int64_t>(200000, 1)));
  CHECK(s.sum.item() == Approx(200000 * std::log(2.0)).epsilon(1e-7));
  CHECK(s.count == 200000);
}

}  // namespace
}  // namespace norma::test
