// Activation functions and their gradients, plain and gated.
#pragma once

#include <cstdint>

namespace norma::kernels {

// tanh and sigmoid stand here for their gradients.
enum class Activation { relu, leaky_relu, gelu, gelu_tanh, silu, softplus, elu, tanh, sigmoid };

// True iff the gradient is computed from the output y, else from the input x.
[[nodiscard]] constexpr bool gradient_reads_output(Activation a) {
  return a == Activation::relu || a == Activation::tanh || a == Activation::sigmoid;
}

// y[i] = f(x[i]). `parameter` is the slope of leaky_relu, the alpha of elu. x may be y.
void activate(Activation a, double parameter, const float* x, float* y, std::int64_t n);
void activate(Activation a, double parameter, const double* x, double* y, std::int64_t n);

// The same for `rows` rows of `cols` elements, in x and in y `stride_x` and `stride_y` apart, on
// the calling thread: for use inside a parallel loop.
void activate_rows(Activation a, const float* x, std::int64_t stride_x, float* y,
                   std::int64_t stride_y, std::int64_t rows, std::int64_t cols);
void activate_rows(Activation a, const double* x, std::int64_t stride_x, double* y,
                   std::int64_t stride_y, std::int64_t rows, std::int64_t cols);

// y[i] = f(x[i]), slope[i] = f'(x[i]), for f of relu, gelu, gelu_tanh, silu. slope may be x.
void activate_with_slope(Activation a, const float* x, float* y, float* slope, std::int64_t n);
void activate_with_slope(Activation a, const double* x, double* y, double* slope, std::int64_t n);

// dx[i] = dy[i] f'(x[i]), or added to dx if `accumulate`. `s` is x or y: see
// gradient_reads_output(). dx may be dy.
void activate_backward(Activation a, double parameter, const float* s, const float* dy,
                       bool accumulate, float* dx, std::int64_t n);
void activate_backward(Activation a, double parameter, const double* s, const double* dy,
                       bool accumulate, double* dx, std::int64_t n);

// y[i] = f(gate[i]) up[i], for f of relu, gelu, gelu_tanh, silu.
void gate(Activation a, const float* gate, const float* up, float* y, std::int64_t n);
void gate(Activation a, const double* gate, const double* up, double* y, std::int64_t n);

// A gradient to write: null where it is not wanted.
template <class T>
struct Output {
  T* data = nullptr;
  bool accumulate = false;
};
// dgate = dy up f'(gate), dup = dy f(gate).
void gate_backward(Activation a, const float* gate, const float* up, const float* dy,
                   Output<float> dgate, Output<float> dup, std::int64_t n);
void gate_backward(Activation a, const double* gate, const double* up, const double* dy,
                   Output<double> dgate, Output<double> dup, std::int64_t n);

}  // namespace norma::kernels
