#include "core/ops/activations.h"

#include <cmath>
#include <limits>

#include "core/ops/arithmetic.h"
#include "core/ops/math.h"
#include "tests/core/ops/pointwise_reference.h"

namespace norma::test {
namespace {

using Inputs = std::vector<Tensor>;
using Values = std::vector<double>;
using Function1 = std::function<Tensor(const Tensor&)>;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

double logistic(double v) { return 1.0 / (1.0 + std::exp(-v)); }
double gelu_erf(double v) { return 0.5 * v * std::erfc(-v / std::sqrt(2.0)); }
double gelu_tanh(double v) {
  const double z = std::sqrt(2.0 / std::acos(-1.0)) * (v + 0.044715 * v * v * v);
  return 0.5 * v * (1.0 + std::tanh(z));
}
double rectified(double v) { return v > 0.0 ? v : 0.0; }

const Function1 kGeluErf = [](const Tensor& x) { return gelu(x); };
const Function1 kGeluTanh = [](const Tensor& x) { return gelu(x, GeluForm::tanh); };
const Function1 kLeaky = [](const Tensor& x) { return leaky_relu(x, 0.1); };
const Function1 kElu = [](const Tensor& x) { return elu(x, 1.5); };

OpCase case_of(const Function1& f, double (*reference)(double)) {
  return {.run = [f](const Inputs& x) { return f(x[0]); },
          .reference = unary_reference(reference),
          .samples = unary_shapes(),
          .low = -5.0,
          .high = 5.0};
}

// The same for a function with a kink at 0.
OpCase kinked_case(const Function1& f, double (*reference)(double)) {
  return {.run =
              [f](const Inputs& x) {
                return f(x[0] + away_from_zero(x[0].shape(), 1.5, x[0].dtype()));
              },
          .reference =
              [reference](const Inputs& x) {
                return unary_reference(reference)(
                    {x[0] + away_from_zero(x[0].shape(), 1.5, DType::f64)});
              },
          .samples = unary_shapes()};
}

NORMA_OP_CASE(relu, all) { return kinked_case(relu, rectified); }
NORMA_OP_CASE(leaky_relu, all) {
  return kinked_case(kLeaky, [](double v) { return v > 0.0 ? v : 0.1 * v; });
}
NORMA_OP_CASE(leaky_relu, negative_slope) {
  return kinked_case([](const Tensor& x) { return leaky_relu(x, -0.5); },
                     [](double v) { return v > 0.0 ? v : -0.5 * v; });
}
NORMA_OP_CASE(gelu, erf) { return case_of(kGeluErf, gelu_erf); }
NORMA_OP_CASE(gelu, tanh) { return case_of(kGeluTanh, gelu_tanh); }
NORMA_OP_CASE(silu, all) {
  return case_of(silu, [](double v) { return v * logistic(v); });
}
NORMA_OP_CASE(softplus, all) {
  return case_of(softplus, [](double v) { return std::log1p(std::exp(v)); });
}
NORMA_OP_CASE(elu, all) {
  return kinked_case(kElu, [](double v) { return v > 0.0 ? v : 1.5 * std::expm1(v); });
}

std::vector<std::vector<Shape>> gated_shapes() {
  std::vector<std::vector<Shape>> samples;
  for (const auto& s : unary_shapes()) samples.push_back({s[0], s[0]});
  return samples;
}
OpCase gated_case(const std::string& name, Tensor (*f)(const Tensor&, const Tensor&),
                  double (*reference)(double)) {
  return {
      .run = [f](const Inputs& x) { return f(x[0], x[1]); },
      .reference = binary_reference([reference](double g, double u) { return reference(g) * u; }),
      .samples = gated_shapes(),
      .low = -4.0,
      .high = 4.0,
      .errors = {{[f] {
                    (void)f(Tensor::zeros(Shape{2, 3}), Tensor::zeros(Shape{3}));
                  },
                  name + ": gate and up must have one shape; got (2, 3) and (3)"},
                 {[f] { (void)f(Tensor::zeros(Shape{3}), Tensor::zeros(Shape{3}, DType::f64)); },
                  name + ": gate and up must have one type; got f32 and f64"}}};
}
NORMA_OP_CASE(swiglu, all) {
  return gated_case("swiglu", swiglu, [](double v) { return v * logistic(v); });
}
NORMA_OP_CASE(geglu, erf) {
  return gated_case(
      "geglu", [](const Tensor& g, const Tensor& u) { return geglu(g, u); }, gelu_erf);
}
NORMA_OP_CASE(geglu, tanh) {
  return gated_case(
      "geglu", [](const Tensor& g, const Tensor& u) { return geglu(g, u, GeluForm::tanh); },
      gelu_tanh);
}
NORMA_OP_CASE(reglu, all) {
  OpCase row = gated_case("reglu", reglu, rectified);
  const auto shifted = [](const Inputs& x) {
    return x[0] + away_from_zero(x[0].shape(), 1.5, x[0].dtype());
  };
  const Reference reference = row.reference;
  row.run = [=](const Inputs& x) { return reglu(shifted(x), x[1]); };
  row.reference = [=](const Inputs& x) { return reference({shifted(x), x[1]}); };
  row.low = -1.0;
  row.high = 1.0;
  return row;
}

// torch 2.13.0, f64: values and slopes at these points, where PyTorch is itself exact.
TEST_CASE("activations agree with PyTorch") {
  const std::initializer_list<double> points = {0.0, 0.1, -0.1, 0.5, -0.5, 1.0, -1.0, 3.0, -3.0};
  struct Row {
    const char* name;
    Function1 f;
    Values value, slope;
  };
  const Row rows[] = {
      {"gelu erf",
       kGeluErf,
       {0, 0.0539827837277, -0.0460172162723, 0.345731230637, -0.154268769363, 0.841344746069,
        -0.158655253931, 2.99595030591, -0.00404969409489},
       {0.5, 0.579523092025, 0.420476907975, 0.867495124656, 0.132504875344, 1.08331547059,
        -0.0833154705877, 1.0119456472, -0.0119456472042}},
      {"gelu tanh",
       kGeluTanh,
       {0, 0.0539827510454, -0.0460172489546, 0.345714009825, -0.154285990175, 0.841191990608,
        -0.158808009392, 2.99636260792, -0.00363739208177},
       {0.5, 0.579521789272, 0.420478210728, 0.867369903535, 0.132630096465, 1.08296408385,
        -0.0829640838458, 1.01158416663, -0.011584166631}},
      {"silu",
       silu,
       {0, 0.0524979187479, -0.0475020812521, 0.311229665601, -0.188770334399, 0.73105857863,
        -0.26894142137, 2.85772238047, -0.142277619533},
       {0.5, 0.549916791498, 0.450083208502, 0.739961187303, 0.260038812697, 0.927670511871,
        0.0723294881285, 1.08810410602, -0.0881041060152}},
      {"softplus",
       softplus,
       {0.69314718056, 0.744396660074, 0.644396660074, 0.97407698418, 0.47407698418, 1.31326168752,
        0.313261687518, 3.04858735157, 0.0485873515737},
       {0.5, 0.524979187479, 0.475020812521, 0.622459331202, 0.377540668798, 0.73105857863,
        0.26894142137, 0.952574126822, 0.0474258731776}},
      {"elu 1.5",
       kElu,
       {0, 0.1, -0.142743872946, 0.5, -0.590204010431, 1, -0.948180838243, 3, -1.42531939745},
       {1.5, 1, 1.35725612705, 1, 0.909795989569, 1, 0.551819161757, 1, 0.0746806025518}},
      {"leaky_relu 0.1",
       kLeaky,
       {0, 0.1, -0.01, 0.5, -0.05, 1, -0.1, 3, -0.3},
       {0.1, 1, 0.1, 1, 0.1, 1, 0.1, 1, 0.1}},
      {"relu", relu, {0, 0.1, 0, 0.5, 0, 1, 0, 3, 0}, {0, 1, 0, 1, 0, 1, 0, 1, 0}},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    CHECK(compare(at(row.f, points, DType::f64), row.value, 1e-11) == "");
    CHECK(compare(slope_at(row.f, points, DType::f64), row.slope, 1e-11) == "");
    CHECK(compare(at(row.f, points), row.value, 3e-7) == "");
    CHECK(compare(slope_at(row.f, points), row.slope, 3e-7) == "");
  }
}

TEST_CASE("GELU keeps its relative accuracy in the lower tail (tenstorrent/tt-metal#56517)") {
  // By 30-digit arithmetic (mpmath): x P(x), P(x) + x p(x), and the tanh form.
  const std::initializer_list<double> points = {-1.0, -3.0, -5.0, -10.0};
  const Values erf_form = {-0.158655253931457, -0.00404969409489028, -1.43325785939596e-06,
                           -7.61985302416053e-23};
  const Values slope = {-0.0833154705876863, -0.0119456472041839, -7.14694600179229e-06,
                        -7.61840009646481e-22};
  const Values tanh_form = {-0.158808009391723, -0.00363739208177302, -2.29179619662951e-07,
                            -1.20409234820981e-37};
  struct Precision {
    DType dtype;
    double tolerance;
  };
  for (const auto& [dtype, tolerance] :
       {Precision{DType::f32, 1e-6}, Precision{DType::f64, 1e-13}}) {
    INFO(name_of(dtype));
    const Values y = at(kGeluErf, points, dtype);
    const Values dy = slope_at(kGeluErf, points, dtype);
    const Values t = at(kGeluTanh, points, dtype);
    for (std::size_t i = 0; i < 4; ++i) {
      INFO("point " << i);
      CHECK(near_relative(y[i], erf_form[i], tolerance));
      CHECK(near_relative(dy[i], slope[i], tolerance));
      // The argument of the tanh form reaches 85, so that its rounding counts that often.
      CHECK(near_relative(t[i], tanh_form[i], 30.0 * tolerance));
    }
  }
}

TEST_CASE("GELU in f32 has small relative error over the whole range") {
  constexpr std::int64_t kPoints = 260003;
  Tensor x = Tensor::empty(Shape{kPoints});
  float* p = x.mutable_data<float>();
  for (std::int64_t i = 0; i < kPoints; ++i) {
    p[i] = static_cast<float>(-13.0 + 26.0 * static_cast<double>(i) / (kPoints - 1));
  }
  const Tensor y = gelu(x);
  double worst = 0;
  for (std::int64_t i = 0; i < kPoints; ++i) {
    const double expected = gelu_erf(static_cast<double>(p[i]));
    if (std::abs(expected) < 1e-36) continue;
    worst = std::max(worst, std::abs(y.data<float>()[i] - expected) / std::abs(expected));
  }
  CHECK(worst < 1e-6);
  CHECK(worst > 0.0);
}

TEST_CASE("activations at infinities, huge values and NaN (tenstorrent/tt-metal#56517)") {
  struct Row {
    const char* name;
    Function1 f;
    double low_value, low_slope;
  };
  const Row rows[] = {{"relu", relu, 0.0, 0.0},           {"gelu erf", kGeluErf, 0.0, 0.0},
                      {"gelu tanh", kGeluTanh, 0.0, 0.0}, {"silu", silu, 0.0, 0.0},
                      {"softplus", softplus, 0.0, 0.0},   {"elu", kElu, -1.5, 0.0},
                      {"leaky_relu", kLeaky, -kInf, 0.1}};
  for (const Row& row : rows) {
    for (DType dtype : {DType::f32, DType::f64}) {
      INFO(row.name << " " << name_of(dtype));
      const double huge = dtype == DType::f32 ? static_cast<double>(1e30f) : 1e30;
      const Values y = at(row.f, {kInf, -kInf, huge, -huge, kNan}, dtype);
      CHECK(y[0] == kInf);
      CHECK(y[1] == row.low_value);
      CHECK(y[2] == huge);
      if (std::isfinite(row.low_value)) CHECK(y[3] == row.low_value);
      CHECK(std::isnan(y[4]));
      const Values dy = slope_at(row.f, {kInf, -kInf, huge, -huge}, dtype);
      CHECK(dy[0] == 1.0);
      CHECK(near_relative(dy[1], row.low_slope, 1e-7));
      CHECK(dy[2] == 1.0);
      CHECK(near_relative(dy[3], row.low_slope, 1e-7));
    }
  }
}

TEST_CASE("relu at 0 passes no gradient, and keeps an infinite one out") {
  Tensor x = Tensor::from(Shape{3}, {0.0, -1.0, 2.0});
  x.set_requires_grad();
  backward(relu(x), Tensor::from(Shape{3}, {1.0, kInf, 3.0}));
  CHECK(x.grad().to_vector() == Values{0.0, 0.0, 3.0});
}

TEST_CASE("relu saves its output alone") {
  Tensor x = Tensor::ones(Shape{4});
  x.set_requires_grad();
  const Tensor y = relu(x);
  REQUIRE(y.impl()->node->saved.size() == 1);
  CHECK(y.impl()->node->saved[0].tensor.storage() == y.storage());
}

TEST_CASE("gradients of activations add to what stands in a parameter's gradient") {
  for (const Function1& f : {kGeluErf, Function1(silu), Function1(relu), Function1(tanh)}) {
    Tensor x = Tensor::from(Shape{21}, std::vector<double>(21, 0.7), DType::f64);
    x.set_requires_grad();
    const Tensor ones = Tensor::ones(Shape{21}, DType::f64);
    backward(f(x), ones);
    const Values once = x.grad().to_vector();
    backward(f(x), ones);
    const Values twice = x.grad().to_vector();
    for (std::size_t i = 0; i < 21; ++i) CHECK(twice[i] == Approx(2.0 * once[i]).epsilon(1e-14));
  }
  Tensor g = Tensor::from(Shape{3}, {0.5, -0.5, 2.0}, DType::f64);
  g.set_requires_grad();
  // The same tensor as gate and as input: x^2 sigmoid(x).
  backward(swiglu(g, g), Tensor::ones(Shape{3}, DType::f64));
  Values expected;
  for (double v : {0.5, -0.5, 2.0}) {
    const double s = logistic(v);
    expected.push_back(2.0 * v * s + v * v * s * (1.0 - s));
  }
  CHECK(compare(g.grad().to_vector(), expected, 1e-14) == "");
}

TEST_CASE("only the wanted gradient of a gated activation is computed") {
  for (int wanted : {0, 1}) {
    Tensor x[2] = {Tensor::from(Shape{2}, {0.5, -1.0}), Tensor::from(Shape{2}, {2.0, 3.0})};
    x[wanted].set_requires_grad();
    backward(reglu(x[0], x[1]), Tensor::ones(Shape{2}));
    CHECK_FALSE(x[1 - wanted].grad().defined());
    CHECK(x[wanted].grad().to_vector() == (wanted == 0 ? Values{2.0, 0.0} : Values{0.5, 0.0}));
  }
}

TEST_CASE("half types pass through activations") {
  for (DType dtype : {DType::bf16, DType::f16}) {
    Tensor x = Tensor::from(Shape{2}, {1.0, -1.0}, dtype);
    x.set_requires_grad();
    const Tensor y = gelu(x);
    CHECK(y.dtype() == dtype);
    CHECK(y.to_vector() ==
          Tensor::from(Shape{2}, {0.841344746069, -0.158655253931}, dtype).to_vector());
    backward(y, Tensor::ones(Shape{2}, dtype));
    CHECK(x.grad().to_vector() ==
          Tensor::from(Shape{2}, {1.08331547059, -0.0833154705877}, dtype).to_vector());
  }
}

}  // namespace
}  // namespace norma::test
