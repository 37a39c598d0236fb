#include "apps/training/sharpness.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/autograd.h"

namespace norma {
namespace {

using Vector = std::vector<double>;

constexpr double kStandsStill = 1e-3;  // relative change over the last kWindow products
constexpr std::size_t kWindow = 5;

double dot(const Vector& a, const Vector& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// y += s x.
void add_to(Vector& y, double s, const Vector& x) {
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += s * x[i];
}

// A symmetric tridiagonal matrix; `beside` has one entry fewer than `diagonal`.
struct Tridiagonal {
  Vector diagonal, beside;

  // How many eigenvalues lie below x: the negative pivots of T - x (Sturm).
  [[nodiscard]] std::size_t below(double x) const {
    std::size_t count = 0;
    double pivot = 1;
    for (std::size_t i = 0; i < diagonal.size(); ++i) {
      const double b = i == 0 ? 0 : beside[i - 1];
      pivot = diagonal[i] - x - (i == 0 ? 0 : b * b / pivot);
      if (pivot == 0) pivot = 1e-300;
      if (pivot < 0) ++count;
    }
    return count;
  }

  // The eigenvalue number `k` from below, by bisection between the bounds of Gershgorin.
  [[nodiscard]] double eigenvalue(std::size_t k) const {
    double low = diagonal[0], high = diagonal[0];
    for (std::size_t i = 0; i < diagonal.size(); ++i) {
      const double radius = (i > 0 ? std::abs(beside[i - 1]) : 0) +
                            (i + 1 < diagonal.size() ? std::abs(beside[i]) : 0);
      low = std::min(low, diagonal[i] - radius);
      high = std::max(high, diagonal[i] + radius);
    }
    for (int i = 0; i < 100 && high - low > 1e-13 * std::max(std::abs(low), std::abs(high)); ++i) {
      const double middle = low + (high - low) / 2;
      (below(middle) > k ? high : low) = middle;
    }
    return low + (high - low) / 2;
  }
};

// The numbers of the tensors behind one another; zeros, as many as `like` has, for an undefined
// one.
Vector flat(const std::vector<Tensor>& tensors, const std::vector<Tensor>& like) {
  Vector all;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Vector part = tensors[i].defined() ? tensors[i].to_vector()
                                             : Vector(static_cast<std::size_t>(like[i].numel()));
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace

Extremes lanczos(const std::function<Vector(const Vector&)>& product, std::int64_t size, int most,
                 RandomKey key) {
  Extremes found;
  if (size == 0) return found;
  const auto n = static_cast<std::size_t>(size);
  RandomStream random(key);
  Vector q(n);
  for (double& x : q) x = random.normal();
  double length = std::sqrt(dot(q, q));
  std::vector<Vector> basis;
  Vector smallest_so_far, largest_so_far;
  Tridiagonal t;
  const int steps = static_cast<int>(std::min<std::int64_t>(most, size));
  while (found.products < steps) {
    for (double& x : q) x /= length;
    basis.push_back(q);
    Vector w = product(q);
    ++found.products;
    const double along = dot(w, q);
    if (!std::isfinite(along)) {  // the bisection would pass over it
      found.smallest = found.largest = std::numeric_limits<double>::quiet_NaN();
      break;
    }
    t.diagonal.push_back(along);
    // Twice: once is not enough where the vectors have lost their angles to rounding.
    for (int round = 0; round < 2; ++round) {
      for (const Vector& b : basis) add_to(w, -dot(w, b), b);
    }
    const double smallest = t.eigenvalue(0), largest = t.eigenvalue(t.diagonal.size() - 1);
    const double scale = std::max(std::abs(smallest), std::abs(largest));
    const auto still = [&](const Vector& history, double now) {
      return history.size() >= kWindow &&
             std::abs(now - history[history.size() - kWindow]) <= kStandsStill * scale;
    };
    const bool stands = still(smallest_so_far, smallest) && still(largest_so_far, largest);
    smallest_so_far.push_back(found.smallest = smallest);
    largest_so_far.push_back(found.largest = largest);
    length = std::sqrt(dot(w, w));
    // The vectors span a space that the matrix does not leave: the values are exact in it.
    const bool closed = !(length > 1e-12 * std::max(scale, 1e-300));
    found.converged = stands || closed || found.products == size;
    if (found.converged || !std::isfinite(length)) break;
    t.beside.push_back(length);
    q = std::move(w);
  }
  return found;
}

Hessian::Hessian(const Tensor& loss, std::vector<Tensor> parameters)
    : parameters_(std::move(parameters)) {
  gradients_ = grad(std::span(&loss, 1), parameters_, {.create_graph = true, .allow_unused = true});
  for (const Tensor& p : parameters_) size_ += p.numel();
}

std::vector<double> Hessian::gradient() const { return flat(gradients_, parameters_); }

std::vector<double> Hessian::product(const Vector& v) const {
  require(static_cast<std::int64_t>(v.size()) == size_,
          "Hessian: expected a vector of {} numbers; got {}", size_, v.size());
  std::vector<Tensor> outputs, directions;
  std::size_t at = 0;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor& p = parameters_[i];
    const auto n = static_cast<std::size_t>(p.numel());
    if (gradients_[i].defined() && gradients_[i].requires_grad()) {
      outputs.push_back(gradients_[i]);
      directions.push_back(Tensor::from(p.shape(), std::span(v).subspan(at, n), p.dtype()));
    }
    at += n;
  }
  std::vector<Tensor> rows(parameters_.size());
  if (!outputs.empty()) {
    rows = grad(outputs, parameters_, {.retain_graph = true, .allow_unused = true}, directions);
  }
  return flat(rows, parameters_);
}

}  // namespace norma
