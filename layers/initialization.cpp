#include "layers/initialization.h"

#include <cmath>
#include <vector>

namespace norma {
namespace {

void symmetric_uniform(Tensor& w, double bound, RandomKey key) {
  fill_uniform(w, -bound, bound, key);
}

double fan_mean_root(double numerator, Fan fan) {
  return std::sqrt(numerator / static_cast<double>(std::max<std::int64_t>(1, fan.in + fan.out)));
}

double fan_in_root(double numerator, Fan fan) {
  return std::sqrt(numerator / static_cast<double>(std::max<std::int64_t>(1, fan.in)));
}

}  // namespace

void TorchInit::fill(Tensor& w, Fan fan, RandomKey key) {
  symmetric_uniform(w, fan_in_root(1, fan), key);
}

void Gpt2Init::fill(Tensor& w, Fan, RandomKey key) { fill_normal(w, 0, std, key); }

void NormalInit::fill(Tensor& w, Fan, RandomKey key) const { fill_normal(w, 0, std, key); }

void XavierUniformInit::fill(Tensor& w, Fan fan, RandomKey key) const {
  symmetric_uniform(w, gain * fan_mean_root(6, fan), key);
}

void XavierNormalInit::fill(Tensor& w, Fan fan, RandomKey key) const {
  fill_normal(w, 0, gain * fan_mean_root(2, fan), key);
}

void HeUniformInit::fill(Tensor& w, Fan fan, RandomKey key) {
  symmetric_uniform(w, fan_in_root(6, fan), key);
}

void HeNormalInit::fill(Tensor& w, Fan fan, RandomKey key) {
  fill_normal(w, 0, fan_in_root(2, fan), key);
}

// Gram-Schmidt over the shorter side, twice for orthogonality to rounding, in f64.
void OrthogonalInit::fill(Tensor& w, Fan, RandomKey key) {
  const std::int64_t out = w.size(0), in = w.numel() / std::max<std::int64_t>(1, out);
  const bool by_rows = out <= in;
  const std::int64_t count = by_rows ? out : in, length = by_rows ? in : out;
  Tensor normal = Tensor::empty(Shape{count, length}, DType::f64);
  fill_normal(normal, 0, 1, key);
  double* v = normal.mutable_data<double>();
  for (std::int64_t i = 0; i < count; ++i) {
    double* a = v + i * length;
    for (int pass = 0; pass < 2; ++pass) {
      for (std::int64_t j = 0; j < i; ++j) {
        const double* b = v + j * length;
        double dot = 0;
        for (std::int64_t k = 0; k < length; ++k) dot += a[k] * b[k];
        for (std::int64_t k = 0; k < length; ++k) a[k] -= dot * b[k];
      }
    }
    double square = 0;
    for (std::int64_t k = 0; k < length; ++k) square += a[k] * a[k];
    const double scale = square > 0 ? 1 / std::sqrt(square) : 0;
    for (std::int64_t k = 0; k < length; ++k) a[k] *= scale;
  }
  std::vector<double> values(static_cast<std::size_t>(out * in));
  for (std::int64_t o = 0; o < out; ++o) {
    for (std::int64_t i = 0; i < in; ++i) {
      values[static_cast<std::size_t>(o * in + i)] =
          by_rows ? v[o * length + i] : v[i * length + o];
    }
  }
  w.copy_(Tensor::from(w.shape(), values, DType::f64));
}

}  // namespace norma
