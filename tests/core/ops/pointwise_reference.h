// Naive references for elementwise ops, and the shapes that they are tested at.
#pragma once

#include <cmath>
#include <functional>
#include <vector>

#include "tests/support/op_case.h"

namespace norma::test {

using Reference = std::function<std::vector<double>(const std::vector<Tensor>&)>;

// Element i of the output, from element i of the operands broadcast to `out`.
inline std::vector<double> broadcast_values(const Tensor& x, const Shape& out) {
  const std::vector<double> values = x.to_vector();
  std::vector<double> result(static_cast<std::size_t>(out.numel()));
  const int lead = out.rank() - x.rank();
  for (std::int64_t i = 0; i < out.numel(); ++i) {
    std::int64_t rest = i, index = 0, stride = 1;
    for (int axis = out.rank() - 1; axis >= 0; --axis) {
      const std::int64_t at = rest % out[axis];
      rest /= out[axis];
      if (axis < lead) continue;
      const std::int64_t size = x.shape()[axis - lead];
      if (size > 1) index += at * stride;
      stride *= size;
    }
    result[static_cast<std::size_t>(i)] = values[static_cast<std::size_t>(index)];
  }
  return result;
}

template <class F>
Reference unary_reference(F f) {
  return [f](const std::vector<Tensor>& x) {
    std::vector<double> y = x[0].to_vector();
    for (double& v : y) v = f(v);
    return y;
  };
}

template <class F>
Reference binary_reference(F f) {
  return [f](const std::vector<Tensor>& x) {
    const Shape out = broadcast_shapes("reference", x[0].shape(), x[1].shape());
    std::vector<double> y = broadcast_values(x[0], out);
    const std::vector<double> b = broadcast_values(x[1], out);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = f(y[i], b[i]);
    return y;
  };
}

// Sizes around the width of a vector, and one of several chunks.
inline std::vector<std::vector<Shape>> unary_shapes() {
  return {{Shape{}},   {Shape{1}},    {Shape{7}},       {Shape{3, 11}},
          {Shape{33}}, {Shape{0, 4}}, {Shape{301, 257}}};
}

// Equal shapes, a scalar, a bias, a column, both at once, axes in the middle, and several chunks.
inline std::vector<std::vector<Shape>> binary_shapes() {
  return {{Shape{}, Shape{}},
          {Shape{3, 5}, Shape{3, 5}},
          {Shape{4, 17}, Shape{}},
          {Shape{}, Shape{2, 9}},
          {Shape{3, 17}, Shape{17}},
          {Shape{5, 7}, Shape{5, 1}},
          {Shape{1, 6}, Shape{4, 1}},
          {Shape{2, 1, 3, 1}, Shape{4, 1, 5}},
          {Shape{2, 3, 4}, Shape{1, 3, 1}},
          {Shape{0, 3}, Shape{3}},
          {Shape{300, 257}, Shape{257}},
          {Shape{1, 70001}, Shape{2, 1}}};
}

// A constant of `shape`: `distance` at every third element, else its negative. Added to inputs that
// are smaller than it, it keeps them away from a kink, where differences say nothing.
inline Tensor away_from_zero(const Shape& shape, double distance, DType dtype) {
  std::vector<double> values(static_cast<std::size_t>(shape.numel()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 3 == 0 ? distance : -distance;
  return Tensor::from(shape, values, dtype);
}

// Values by hand at points given in f32.
inline std::vector<double> at(const std::function<Tensor(const Tensor&)>& f,
                              std::initializer_list<double> points, DType dtype = DType::f32) {
  const Shape shape{static_cast<std::int64_t>(points.size())};
  return f(Tensor::from(shape, points, dtype)).to_vector();
}

// The gradient of the sum of f at the points.
inline std::vector<double> slope_at(const std::function<Tensor(const Tensor&)>& f,
                                    std::initializer_list<double> points,
                                    DType dtype = DType::f32) {
  const Shape shape{static_cast<std::int64_t>(points.size())};
  Tensor x = Tensor::from(shape, points, dtype);
  x.set_requires_grad();
  backward(f(x), Tensor::ones(shape, dtype));
  return x.grad().to_vector();
}

// True iff got and expected agree to the relative error `tolerance`; infinities and NaN exactly.
inline bool near_relative(double got, double expected, double tolerance) {
  if (std::isnan(expected)) return std::isnan(got);
  if (std::isinf(expected) || expected == 0.0) return got == expected;
  return std::abs(got - expected) <= tolerance * std::abs(expected);
}

}  // namespace norma::test
