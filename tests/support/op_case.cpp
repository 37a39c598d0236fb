#include "tests/support/op_case.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "core/instructions.h"
#include "core/parallel.h"
#include "core/random.h"

namespace norma::test {
namespace {

std::set<std::string>& op_cases() {
  static std::set<std::string> names;
  return names;
}

constexpr std::int64_t kFullJacobian = 64;  // coordinates up to which each is perturbed
constexpr int kDirections = 3;
const double kStep = std::cbrt(2.2e-16);

Tensor cast_of(const Tensor& x, DType dtype) {
  Tensor y = Tensor::empty(x.shape(), dtype);
  y.copy_(x);
  return y;
}

double dot(const Tensor& a, const Tensor& b) {
  double sum = 0;
  const auto x = a.to_vector(), y = b.to_vector();
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

std::vector<Tensor> leaves(const std::vector<Tensor>& inputs) {
  std::vector<Tensor> out;
  for (const Tensor& x : inputs) out.push_back(x.clone().set_requires_grad());
  return out;
}

// The gradient of <u, f(x)> for every input (zeros where none flows).
std::vector<Tensor> gradients(const Function& f, const std::vector<Tensor>& inputs,
                              const Tensor& u) {
  const std::vector<Tensor> x = leaves(inputs);
  const Tensor y = f(x);
  std::vector<Tensor> g;
  if (y.requires_grad()) {
    g = grad(std::span(&y, 1), x, {.allow_unused = true}, std::span(&u, 1));
  } else {
    g.resize(x.size());
  }
  for (std::size_t i = 0; i < g.size(); ++i) {
    if (!g[i].defined()) g[i] = Tensor::zeros(x[i].shape(), x[i].dtype());
  }
  return g;
}

// Compares `analytic` with central differences of `value` at `inputs`.
std::string compare_differences(const std::function<double(const std::vector<Tensor>&)>& value,
                                const std::vector<Tensor>& inputs,
                                const std::vector<Tensor>& analytic, double tolerance) {
  double scale = 0;
  for (const Tensor& g : analytic) {
    for (double v : g.to_vector()) scale = std::max(scale, std::abs(v));
  }
  const auto along = [&](const std::vector<Tensor>& direction, const std::string& what) {
    std::vector<Tensor> plus, minus;
    double expected = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const auto x = inputs[i].to_vector(), v = direction[i].to_vector();
      std::vector<double> p(x.size()), m(x.size());
      for (std::size_t k = 0; k < x.size(); ++k) {
        p[k] = x[k] + kStep * v[k];
        m[k] = x[k] - kStep * v[k];
      }
      plus.push_back(Tensor::from(inputs[i].shape(), p, DType::f64));
      minus.push_back(Tensor::from(inputs[i].shape(), m, DType::f64));
      expected += dot(analytic[i], direction[i]);
    }
    const double numeric = (value(plus) - value(minus)) / (2 * kStep);
    const double bound = tolerance * (1 + std::max({scale, std::abs(numeric), std::abs(expected)}));
    if (std::abs(numeric - expected) <= bound) return std::string();
    return fmt::format("{}: differences give {}, the gradient {}", what, numeric, expected);
  };
  std::int64_t total = 0;
  for (const Tensor& x : inputs) total += x.numel();
  if (total <= kFullJacobian) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      for (std::int64_t k = 0; k < inputs[i].numel(); ++k) {
        std::vector<Tensor> direction;
        for (const Tensor& x : inputs) direction.push_back(Tensor::zeros(x.shape(), DType::f64));
        direction[i].mutable_data<double>()[k] = 1;
        const std::string what = along(direction, fmt::format("input {} element {}", i, k));
        if (!what.empty()) return what;
      }
    }
    return {};
  }
  for (int d = 0; d < kDirections; ++d) {
    std::vector<Tensor> direction;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      direction.push_back(
          random_tensor(inputs[i].shape(), 1000 + 10 * static_cast<std::uint64_t>(d) + i));
    }
    const std::string what = along(direction, fmt::format("direction {}", d));
    if (!what.empty()) return what;
  }
  return {};
}

struct Pass {
  Tensor value;
  std::vector<Tensor> grads;
};

Pass forward_backward(const Function& f, const std::vector<Tensor>& inputs, DType dtype) {
  std::vector<Tensor> x;
  for (const Tensor& t : inputs) x.push_back(cast_of(t, dtype));
  const Tensor y = f(x);
  const Tensor u = cast_of(random_tensor(y.shape(), 77), dtype);
  return {y.detach(), gradients(f, x, u)};
}

void check_composed(const OpCase& row, const std::vector<Tensor>& inputs) {
  const std::vector<Tensor> x = leaves(inputs);
  const Tensor y = row.run(x);
  if (!y.requires_grad()) return;
  const Ref<Node> node = y.impl()->node;
  if (!node || !node->op->composed) return;  // an op may return its input
  std::vector<Tensor> saved;
  for (std::size_t i = 0; i < node->inputs.size(); ++i) saved.push_back(node->saved[i].tensor);
  const Tensor z = node->op->composed(saved, node->attrs);
  CHECK(compare(y, z, 1e-9) == "");
  if (!z.requires_grad()) return;
  const Tensor u = random_tensor(y.shape(), 5);
  // What lies below the op belongs to both graphs.
  const auto dy =
      grad(std::span(&y, 1), x, {.retain_graph = true, .allow_unused = true}, std::span(&u, 1));
  const auto dz = grad(std::span(&z, 1), x, {.allow_unused = true}, std::span(&u, 1));
  for (std::size_t i = 0; i < x.size(); ++i) {
    INFO("gradient of input " << i << ", fused against composed");
    const Tensor zero = Tensor::zeros(x[i].shape(), DType::f64);
    CHECK(compare(dy[i].defined() ? dy[i] : zero, dz[i].defined() ? dz[i] : zero, 1e-8) == "");
  }
}

void check_threads(const OpCase& row, const std::vector<Tensor>& inputs) {
  const int before = num_threads();
  set_num_threads(1);
  const Pass one = forward_backward(row.run, inputs, DType::f32);
  for (int threads : {2, 3, 8}) {
    set_num_threads(threads);
    INFO(threads << " threads against one");
    const Pass many = forward_backward(row.run, inputs, DType::f32);
    CHECK(same_bits(one.value, many.value));
    for (std::size_t i = 0; i < one.grads.size(); ++i) {
      CHECK(same_bits(one.grads[i], many.grads[i]));
    }
  }
  set_num_threads(before);
}

}  // namespace

bool register_op_case(const std::string& op) { return op_cases().insert(op).second; }
bool has_op_case(const std::string& op) { return op_cases().contains(op); }

Tensor random_tensor(const Shape& shape, std::uint64_t seed, DType dtype, double low, double high) {
  Tensor x = Tensor::empty(shape, DType::f64);
  fill_uniform(x, low, high, random_key(seed, "test"));
  return dtype == DType::f64 ? x : cast_of(x, dtype);
}

std::string compare(const std::vector<double>& got, const std::vector<double>& expected,
                    double tolerance) {
  if (got.size() != expected.size()) {
    return fmt::format("{} values against {}", got.size(), expected.size());
  }
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double a = got[i], b = expected[i];
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (!(std::abs(a - b) <= tolerance * (1 + std::max(std::abs(a), std::abs(b))))) {
      return fmt::format("element {}: got {}, expected {}", i, a, b);
    }
  }
  return {};
}

std::string compare(const Tensor& got, const Tensor& expected, double tolerance) {
  if (!(got.shape() == expected.shape())) {
    return fmt::format("shape {} against {}", got.shape().to_string(),
                       expected.shape().to_string());
  }
  return compare(got.to_vector(), expected.to_vector(), tolerance);
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() &&
         std::memcmp(a.raw(), b.raw(), static_cast<std::size_t>(a.numel() * size_of(a.dtype()))) ==
             0;
}

BestInstructions::~BestInstructions() { set_instruction_set(instruction_sets().front()); }

std::string check_instruction_sets(const Function& f, const std::vector<Tensor>& inputs,
                                   DType dtype, double tolerance) {
  const BestInstructions afterwards;
  const Pass best = forward_backward(f, inputs, dtype);
  const std::vector<std::string> all = instruction_sets();
  for (std::size_t k = 1; k < all.size(); ++k) {
    set_instruction_set(all[k]);
    const Pass pass = forward_backward(f, inputs, dtype);
    if (const std::string what = compare(pass.value, best.value, tolerance); !what.empty()) {
      return fmt::format("{} in {}: {}", all[k], name_of(dtype), what);
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::string what = compare(pass.grads[i], best.grads[i], 20 * tolerance);
      if (!what.empty()) {
        return fmt::format("{} in {}, gradient of input {}: {}", all[k], name_of(dtype), i, what);
      }
    }
  }
  return {};
}

std::string check_gradient(const Function& f, const std::vector<Tensor>& inputs, double tolerance) {
  const Tensor u = random_tensor(f(inputs).shape(), 42);
  const auto value = [&](const std::vector<Tensor>& x) { return dot(u, f(x)); };
  return compare_differences(value, inputs, gradients(f, inputs, u), tolerance);
}

std::string check_second_gradient(const Function& f, const std::vector<Tensor>& inputs,
                                  double tolerance) {
  const Tensor u = random_tensor(f(inputs).shape(), 43);
  std::vector<Tensor> w;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    w.push_back(random_tensor(inputs[i].shape(), 90 + i));
  // value(x) = sum_i <w_i, d<u, f>/dx_i>.
  const auto value = [&](const std::vector<Tensor>& x) {
    const auto g = gradients(f, x, u);
    double sum = 0;
    for (std::size_t i = 0; i < g.size(); ++i) sum += dot(w[i], g[i]);
    return sum;
  };
  const std::vector<Tensor> x = leaves(inputs);
  const Tensor y = f(x);
  if (!y.requires_grad()) return {};
  const auto g =
      grad(std::span(&y, 1), x, {.create_graph = true, .allow_unused = true}, std::span(&u, 1));
  std::vector<Tensor> outputs, seeds;
  for (std::size_t i = 0; i < g.size(); ++i) {
    if (!g[i].defined() || !g[i].requires_grad()) continue;
    outputs.push_back(g[i]);
    seeds.push_back(w[i]);
  }
  std::vector<Tensor> second(x.size());
  if (!outputs.empty()) second = grad(outputs, x, {.allow_unused = true}, seeds);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!second[i].defined()) second[i] = Tensor::zeros(x[i].shape(), DType::f64);
  }
  return compare_differences(value, inputs, second, tolerance);
}

void check_op(const std::string& op, const OpCase& row) {
  std::uint64_t seed = 1;
  for (const std::vector<Shape>& shapes : row.samples) {
    std::string label = op;
    std::vector<Tensor> inputs;
    for (const Shape& s : shapes) {
      label += " " + s.to_string();
      inputs.push_back(random_tensor(s, seed++, DType::f64, row.low, row.high));
    }
    INFO(label);
    const Pass f64 = forward_backward(row.run, inputs, DType::f64);
    const Pass f32 = forward_backward(row.run, inputs, DType::f32);
    if (row.reference) {
      const std::vector<double> expected = row.reference(inputs);
      CHECK(compare(f64.value.to_vector(), expected, row.tolerance_f64) == "");
      CHECK(compare(f32.value.to_vector(), expected, row.tolerance_f32) == "");
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      INFO("gradient of input " << i << " in f32 against f64");
      CHECK(compare(f32.grads[i], f64.grads[i], 20 * row.tolerance_f32) == "");
    }
    CHECK(check_gradient(row.run, inputs) == "");
    if (row.second_order) CHECK(check_second_gradient(row.run, inputs) == "");
    check_composed(row, inputs);
    check_threads(row, inputs);
    CHECK(check_instruction_sets(row.run, inputs, DType::f64, row.tolerance_f64) == "");
    CHECK(check_instruction_sets(row.run, inputs, DType::f32, 2 * row.tolerance_f32) == "");
  }
  for (const OpError& e : row.errors) NORMA_CHECK_ERROR(e.call(), e.text);
}

}  // namespace norma::test
