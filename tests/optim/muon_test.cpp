// Faults that others had are named by their threads.
#include "optim/muon.h"

#include <cmath>

#include "core/parallel.h"
#include "core/random.h"
#include "tests/optim/support.h"
#include "tests/support/catch.h"

namespace norma {
namespace {

using test::give_gradient;
using test::optimizer_config;
using test::parameter;

double largest_difference(const Tensor& a, const Tensor& b) {
  const auto x = a.to_vector(), y = b.to_vector();
  double most = 0;
  for (std::size_t i = 0; i < x.size(); ++i) most = std::max(most, std::fabs(x[i] - y[i]));
  return most;
}

Tensor transposed(const Tensor& x) {
  const std::int64_t rows = x.size(0), cols = x.size(1);
  const auto v = x.to_vector();
  std::vector<double> t;
  for (std::int64_t c = 0; c < cols; ++c) {
    for (std::int64_t r = 0; r < rows; ++r) t.push_back(v[static_cast<std::size_t>(r * cols + c)]);
  }
  return Tensor::from({cols, rows}, t, x.dtype());
}

TEST_CASE("muon gives the reference's weights", "[optim]") {
  // Keller Jordan's formula in f64 with torch 2.13.0; a tall matrix, decay 0.2, three steps.
  std::vector<double> values(6);
  for (std::size_t i = 0; i < 6; ++i) values[i] = std::cos(0.9 * static_cast<double>(i));
  Tensor w = parameter({3, 2}, values, DType::f64);
  const OptimizerPtr muon = make_optimizer(
      optimizer_config(R"({"type":"muon","lr":0.1,"weight_decay":0.2})"), {{"w", w}});
  for (int t = 0; t < 3; ++t) {
    std::vector<double> g(6);
    for (int i = 0; i < 6; ++i) g[static_cast<std::size_t>(i)] = std::sin(1.3 * i + 0.7 * t + 0.5);
    give_gradient(w, g);
    muon->step(0.1);
  }
  CHECK(largest_difference(w, Tensor::from({3, 2},
                                           {0.656045516182, 0.551594892027, -0.169234007124,
                                            -0.702919591495, -0.635321471408, -0.418554748422},
                                           DType::f64)) < 1e-11);
}

TEST_CASE("muon over many steps, tall and wide, at any number of threads", "[optim][threads]") {
  // Keller Jordan's formula in f64 with torch 2.13.0; decay 0.2, fifty steps.
  const std::vector<std::pair<Shape, std::vector<double>>> rows = {
      {Shape{3, 2},
       {-0.132504436343, 0.453318160185, 0.163796186654, -0.156737359762, -0.252406476055,
        -0.599335807326}},
      {Shape{2, 5},
       {0.173589491985, 0.038355931811, 0.00725218369788, -0.0930744227475, -0.290218813303,
        -0.197859536308, 0.389022095273, 0.569681040944, 0.173632548366, -0.319886272557}}};
  for (const auto& [shape, expected] : rows) {
    const auto n = static_cast<std::size_t>(shape.numel());
    std::vector<double> values(n);
    for (std::size_t i = 0; i < n; ++i) values[i] = std::cos(0.9 * static_cast<double>(i));
    Tensor w = parameter(shape, values, DType::f64);
    const OptimizerPtr muon = make_optimizer(
        optimizer_config(R"({"type":"muon","lr":0.1,"weight_decay":0.2})"), {{"w", w}});
    for (int t = 0; t < 50; ++t) {
      for (std::size_t i = 0; i < n; ++i) {
        values[i] = std::sin(1.3 * static_cast<double>(i) + 0.7 * t + 0.5);
      }
      give_gradient(w, values);
      muon->step(0.1);
    }
    CHECK(largest_difference(w, Tensor::from(shape, expected, DType::f64)) < 1e-10);
  }
  // A matrix whose products are shared among threads, beside some that run side by side.
  const int before = num_threads();
  std::vector<std::vector<double>> outcomes;
  for (const int threads : {1, 3}) {
    set_num_threads(threads);
    std::vector<NamedParameter> parameters;
    std::uint64_t seed = 0;
    for (const Shape& shape : {Shape{328, 330}, Shape{40, 24}, Shape{24, 40}, Shape{7}}) {
      Tensor w = Tensor::empty(shape), g = Tensor::empty(shape);
      fill_normal(w, 0, 1, random_key(++seed, "w"));
      fill_normal(g, 0, 1, random_key(seed, "g"));
      w.set_requires_grad();
      w.set_grad(g);
      parameters.push_back({std::to_string(seed), w});
    }
    const OptimizerPtr muon = make_optimizer(optimizer_config(R"("muon")"), parameters);
    muon->step(0.1);
    outcomes.emplace_back();
    for (const NamedParameter& p : parameters) {
      for (const double v : p.tensor.to_vector()) outcomes.back().push_back(v);
    }
  }
  set_num_threads(before);
  CHECK(outcomes[0] == outcomes[1]);
}

TEST_CASE("newton_schulz of a transpose is the transpose (ultralytics/ultralytics#25846)",
          "[optim]") {
  for (const Shape& shape : {Shape{8, 2}, Shape{1, 7}, Shape{5, 5}}) {
    Tensor x = Tensor::empty(shape);
    fill_normal(x, 0, 3, random_key(1, "x"));
    CHECK(largest_difference(newton_schulz(transposed(x)), transposed(newton_schulz(x))) < 1e-5);
  }
  // One row has one singular value, the norm, which goes to about 1.
  const auto row = newton_schulz(Tensor::from({1, 2}, {3, 4}, DType::f64)).to_vector();
  const double norm = std::hypot(row[0], row[1]);
  CHECK(norm > 0.6);
  CHECK(norm < 1.3);
  // A diagonal matrix keeps its axes: singular values of 10 and 1 come near each other.
  const auto d = newton_schulz(Tensor::from({2, 2}, {10, 0, 0, 1}, DType::f64)).to_vector();
  CHECK(d[1] == 0);
  CHECK((d[0] > 0.6 && d[0] < 1.3));
  CHECK((d[3] > 0.6 && d[3] < 1.3));
  for (const double v : newton_schulz(Tensor::zeros({3, 2})).to_vector()) CHECK(v == 0);
}

TEST_CASE("a convolution counts as its flattened matrix (ultralytics/ultralytics#25846)",
          "[optim]") {
  // (64, 4, 3, 3) is 64 x 36: the factor is 4 / 3.
  Tensor w = parameter({64, 4, 3, 3}, std::vector<double>(64 * 36, 0), DType::f64);
  Tensor g = Tensor::empty({64, 36}, DType::f64);
  fill_normal(g, 0, 1, random_key(2, "g"));
  const OptimizerPtr muon =
      make_optimizer(optimizer_config(R"({"type":"muon","nesterov":false})"), {{"0.weight", w}});
  give_gradient(w, g.to_vector());
  muon->step(0.5);
  const auto expected = newton_schulz(g).to_vector(), got = w.to_vector();
  double most = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    most = std::max(most, std::fabs(got[i] + 0.5 * 4 / 3 * expected[i]));
  }
  CHECK(most < 1e-6);  // the momentum's factor 0.05 goes out with the norm, up to its 1e-7
}

TEST_CASE("what is not a hidden matrix follows AdamW", "[optim]") {
  const auto make = [] {
    return std::vector<NamedParameter>{{"tokens.weight", parameter({2, 2}, {1, 2, 3, 4})},
                                       {"blocks.0.ffn.up.bias", parameter({2}, {1, 2})},
                                       {"head.weight", parameter({2, 2}, {1, 2, 3, 4})}};
  };
  const auto a = make(), b = make();
  const OptimizerPtr muon =
      make_optimizer(optimizer_config(R"({"type":"muon","lr":0.02,"rest":{"lr":0.001}})"), a);
  const OptimizerPtr adamw = make_optimizer(optimizer_config(R"("adamw")"), b);
  for (int t = 0; t < 3; ++t) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      std::vector<double> g(static_cast<std::size_t>(a[i].tensor.numel()), 0.3 * (t + 1));
      give_gradient(a[i].tensor, g);
      give_gradient(b[i].tensor, g);
    }
    muon->step(0.01);  // the schedule is at half of its peak
    adamw->step(0.0005);
  }
  for (std::size_t i = 0; i < a.size(); ++i) {
    INFO(a[i].name);
    CHECK(largest_difference(a[i].tensor, b[i].tensor) < 1e-7);
  }
  // The usual globs need not match; one that was given must.
  (void)make_optimizer(optimizer_config(R"({"type":"muon","not_hidden":["tokens.*","*.head.*"]})"),
                       make());
  NORMA_CHECK_ERROR(
      make_optimizer(optimizer_config(R"({"type":"muon","not_hidden":["token.*"]})"), make()),
      "optimizer.not_hidden: 'token.*' matches no parameter; the names are tokens.weight");
}

}  // namespace
}  // namespace norma
