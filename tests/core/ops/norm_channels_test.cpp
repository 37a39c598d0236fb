#include "core/ops/norm_channels.h"

#include <cmath>

#include "core/ops/cast.h"
#include "tests/support/op_case.h"

namespace norma::test {
namespace {

Tensor input(const std::vector<Tensor>& in, std::size_t i) {
  return i < in.size() ? in[i] : Tensor{};
}

// x, weight, bias; with given statistics where `mean` is not empty.
std::vector<double> naive(const std::vector<Tensor>& in, const std::vector<double>& mean,
                          const std::vector<double>& var) {
  const Shape& s = in[0].shape();
  const std::int64_t n = s[0], channels = s[1], space = s.numel(2, s.rank());
  const auto x = in[0].to_vector();
  std::vector<double> y(x.size());
  for (std::int64_t c = 0; c < channels; ++c) {
    std::vector<std::size_t> at;
    for (std::int64_t i = 0; i < n * space; ++i) {
      at.push_back(static_cast<std::size_t>((i / space * channels + c) * space + i % space));
    }
    const auto k = static_cast<std::size_t>(c);
    double m = 0, v = 0;
    for (std::size_t i : at) m += x[i] / double(at.size());
    for (std::size_t i : at) v += (x[i] - m) * (x[i] - m) / double(at.size());
    if (!mean.empty()) m = mean[k], v = var[k];
    for (std::size_t i : at) {
      y[i] = (x[i] - m) / std::sqrt(v + 1e-5) * (in.size() > 1 ? in[1].to_vector()[k] : 1) +
             (in.size() > 2 ? in[2].to_vector()[k] : 0);
    }
  }
  return y;
}

NORMA_OP_CASE(norm_channels, training) {
  return {
      .run =
          [](const auto& in) {
            return batch_norm(in[0], input(in, 1), input(in, 2), {.training = true});
          },
      .reference = [](const auto& in) { return naive(in, {}, {}); },
      // Runs and columns (Note [Channels in pieces]), whole and partial vectors and pieces.
      .samples = {{{4, 3}, {3}, {3}},
                  {{2, 3, 5}, {3}, {3}},
                  {{3, 2, 4, 5}, {2}, {2}},
                  {{7, 5}},
                  {{5, 70}, {70}, {70}},
                  {{300, 3, 7}, {3}, {3}},
                  {{40, 33, 9}, {33}, {33}},
                  {{3, 5, 5000}, {5}, {5}},
                  {{530, 130}, {130}, {130}},
                  {{70, 1030}, {1030}, {1030}},
                  {{0, 3}, {3}, {3}},
                  {{0, 3, 9}, {3}, {3}}},
      .tolerance_f32 = 5e-6,
      .errors = {{[] {
                    (void)batch_norm(Tensor::zeros({1, 4}), {}, {}, {.training = true});
                  },
                  "batch_norm: expected more than one value a channel to take statistics of; got x "
                  "(1, 4); use larger batches, or drop the last one"},
                 {[] {
                    (void)batch_norm(Tensor::zeros({2, 4}), Tensor::ones({3}), {}, {});
                  },
                  "batch_norm: weight must have shape (4) to fit x (2, 4); got (3)"},
                 {[] { (void)batch_norm(Tensor::zeros({4}), {}, {}, {}); },
                  "batch_norm: expected a floating x (N, C), (N, C, L) or (N, C, H, W); got (4)"},
                 {[] {
                    (void)batch_norm(Tensor::zeros({2, 4}), {}, {}, {}, make_running_statistics(3));
                  },
                  "batch_norm: running_mean must have shape (4) and type f32; got (3) and f32"}}};
}

NORMA_OP_CASE(norm_channels, evaluation) {
  const std::vector<double> mean{0.5, -1, 2}, var{2, 0.25, 1};
  return {
      .run =
          [=](const auto& in) {
            RunningStatistics stats = make_running_statistics(3, in[0].dtype());
            stats.mean = Tensor::from({3}, mean, in[0].dtype());
            stats.var = Tensor::from({3}, var, in[0].dtype());
            return batch_norm(in[0], input(in, 1), input(in, 2), {.training = false}, stats);
          },
      .reference = [=](const auto& in) { return naive(in, mean, var); },
      .samples = {{{4, 3}, {3}, {3}}, {{1, 3}}, {{2, 3, 50}, {3}, {3}}, {{70, 3, 600}, {3}, {3}}},
      .tolerance_f32 = 4e-6};
}

// Golden values: torch 2.13.0.
TEST_CASE("batch_norm: as torch") {
  Tensor x = Tensor::from({2, 2, 2}, {1, -2, .5, 3, 0, -1, 2, 4}, DType::f64).set_requires_grad();
  Tensor w = Tensor::from({2}, {1, 2}, DType::f64).set_requires_grad();
  Tensor b = Tensor::from({2}, {.1, .2}, DType::f64).set_requires_grad();
  const Tensor dy = Tensor::from({2, 2, 2}, {.1, .2, .3, .4, .5, .6, .7, .8}, DType::f64);
  RunningStatistics stats = make_running_statistics(2, DType::f64);
  const Tensor y = batch_norm(x, w, b, {}, stats);
  backward(y, dy);
  CHECK(compare(y.to_vector(),
                {1.441635419968927, -1.241635419968927, -2.70020079365226, 1.1667335978840865,
                 0.547211806656309, -0.347211806656309, -0.38004015873045205, 2.713507354498625},
                1e-12) == "");
  CHECK(
      compare(x.grad().to_vector(),
              {-0.16994091584929724, -0.18782852947575, -0.07228102810295112, -0.33682020050907535,
               0.15205187115651175, 0.20571757416853537, 0.2948985457023174, 0.11420268290970884},
              1e-12) == "");
  CHECK(compare(w.grad().to_vector(), {-0.17888472266252362, 0.5607054867727703}, 1e-12) == "");
  CHECK(compare(b.grad().to_vector(), {1.4, 2.2}, 1e-12) == "");
  CHECK(compare(stats.mean.to_vector(), {-0.05, 0.2375}, 1e-12) == "");
  CHECK(compare(stats.var.to_vector(), {1.0666666666666667, 1.1229166666666668}, 1e-12) == "");
  CHECK(stats.batches.item() == 1);

  x.clear_grad();
  w.clear_grad();
  const Tensor z = batch_norm(x, w, b, {.training = false}, stats);
  backward(z, dy);
  CHECK(compare(z.to_vector(),
                {1.1166533628279778, -1.7880705309662446, 0.6954314883088571, 5.413826615059878,
                 0.14841206489657038, -0.8198292330348371, 3.5264685643594693, 7.301184665760286},
                1e-12) == "");
  CHECK(compare(x.grad().to_vector(),
                {0.09682412979314076, 0.1936482595862815, 0.5662074152101224, 0.7549432202801634,
                 0.4841206489657037, 0.5809447787588444, 1.3211506354902856, 1.5098864405603267},
                1e-12) == "");
  CHECK(compare(w.grad().to_vector(), {-0.8036402772830682, 5.121817910088233}, 1e-12) == "");
}

TEST_CASE(
    "batch_norm: pytorch/pytorch#19902, biased to normalise, unbiased in the running variance") {
  RunningStatistics stats = make_running_statistics(1);
  const Tensor y = batch_norm(Tensor::from({4, 1}, {1, 2, 3, 4}), {}, {}, {}, stats);
  CHECK(compare(y.to_vector(), {-1.3416354, -0.4472118, 0.4472118, 1.3416354}, 1e-6) == "");
  CHECK(stats.mean.item() == 0.25);
  CHECK(std::abs(stats.var.item() - 1.0666667) < 1e-6);
}

TEST_CASE("batch_norm: pytorch/pytorch#31498, momentum 0 keeps, no momentum averages") {
  RunningStatistics kept = make_running_statistics(1);
  (void)batch_norm(Tensor::from({2, 1}, {4, 6}), {}, {}, {.momentum = 0.0}, kept);
  CHECK(kept.mean.item() == 0);
  CHECK(kept.var.item() == 1);
  RunningStatistics average = make_running_statistics(1);
  (void)batch_norm(Tensor::from({2, 1}, {0, 2}), {}, {}, {.momentum = std::nullopt}, average);
  (void)batch_norm(Tensor::from({2, 1}, {3, 7}), {}, {}, {.momentum = std::nullopt}, average);
  CHECK(average.mean.item() == 3);
  CHECK(average.var.item() == 5);
  CHECK(average.batches.to_ids()[0] == 2);
}

TEST_CASE(
    "batch_norm: pytorch/pytorch#1381, pytorch/pytorch#29578, one value a channel and empty "
    "batches leave the statistics alone") {
  RunningStatistics stats = make_running_statistics(4);
  CHECK_THROWS_AS(batch_norm(Tensor::ones({1, 4}), {}, {}, {}, stats), Error);
  CHECK(batch_norm(Tensor::ones({1, 4}), {}, {}, {.training = false}, stats).numel() == 4);
  for (const Shape& shape : {Shape{0, 4}, Shape{0, 4, 9}, Shape{2, 4, 0}}) {
    Tensor w = Tensor::ones({4}).set_requires_grad();
    const Tensor y = batch_norm(Tensor::zeros(shape), w, {}, {}, stats);
    CHECK(y.shape() == shape);
    backward(y, Tensor::zeros(shape));
    CHECK(w.grad().to_vector() == std::vector<double>(4, 0.0));
  }
  CHECK(stats.batches.item() == 0);
  CHECK(stats.mean.to_vector() == std::vector<double>(4, 0.0));
  CHECK(stats.var.to_vector() == std::vector<double>(4, 1.0));
  (void)batch_norm(Tensor::ones({1, 4, 2, 2}), {}, {}, {}, stats);
  CHECK(stats.batches.item() == 1);
}

TEST_CASE("batch_norm: microsoft/onnxruntime#21935, images of one colour give exactly beta") {
  for (const Shape& shape : {Shape{3, 2}, Shape{3, 2, 5}, Shape{3, 2, 20, 20}}) {
    Tensor x = Tensor::full(shape, 0.1).set_requires_grad();
    const Tensor y = batch_norm(x, Tensor::full({2}, 1.7), Tensor::full({2}, 0.3), {});
    CHECK(same_bits(y.detach(), Tensor::full(shape, 0.3)));
    backward(y, random_tensor(shape, 1, DType::f32));
    for (double g : x.grad().to_vector()) CHECK(std::isfinite(g));
  }
  const Tensor big = batch_norm(Tensor::from({2, 1}, {1e20, -1e20}), {}, {}, {});
  CHECK(big.to_vector() == std::vector<double>{1, -1});
}

TEST_CASE("batch_norm: f32 is close to f64 far from zero, with outliers, and in several turns") {
  for (const Shape& shape : {Shape{200, 1030}, Shape{130, 40, 5}, Shape{64, 48, 800}}) {
    Tensor x = random_tensor(shape, 1, DType::f32);
    auto* data = x.mutable_data<float>();
    for (std::int64_t i = 0; i < x.numel(); ++i) data[i] += 100;
    data[0] = 1e5;  // the first of the values that the sums of a piece are taken from
    const Tensor dy = random_tensor(shape, 2, DType::f32);
    const auto run = [&](DType type) {
      Tensor in = to(x, type).detach().set_requires_grad();
      const Tensor y = batch_norm(in, {}, {}, {});
      backward(y, to(dy, type));
      return std::pair{y.to_vector(), in.grad().to_vector()};
    };
    const auto [y, dx] = run(DType::f32);
    const auto [exact_y, exact_dx] = run(DType::f64);
    double worst_y = 0, worst_dx = 0;
    for (std::size_t i = 0; i < y.size(); ++i) {
      const double size = std::max(1.0, std::abs(exact_y[i]));
      worst_y = std::max(worst_y, std::abs(y[i] - exact_y[i]) / size);
      worst_dx = std::max(worst_dx, std::abs(dx[i] - exact_dx[i]) / size);
    }
    INFO(shape.numel());
    CHECK(worst_y < 3e-5);
    CHECK(worst_dx < 3e-5);
  }
}

TEST_CASE("batch_norm: half types keep f32 statistics and round once") {
  RunningStatistics stats = make_running_statistics(1);
  const Tensor x = Tensor::from({4, 1}, {1, 2, 3, 4}, DType::bf16);
  const Tensor y = batch_norm(x, Tensor::ones({1}), {}, {}, stats);
  CHECK(same_bits(
      y, Tensor::from({4, 1}, {-1.3416354, -0.4472118, 0.4472118, 1.3416354}, DType::bf16)));
  CHECK(stats.mean.item() == 0.25);
}

}  // namespace
}  // namespace norma::test
