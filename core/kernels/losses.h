// Elementwise losses and their gradients.
#pragma once

#include <cstdint>

namespace norma::kernels {

enum class Loss { mse, mae, huber, bce };

// The sum of the losses of n elements, in f64 after at most 2048 terms on many lanes. `delta` is
// that of huber.
double loss_sum(Loss loss, double delta, const float* x, const float* t, std::int64_t n);
double loss_sum(Loss loss, double delta, const double* x, const double* t, std::int64_t n);

// Where a gradient goes: nowhere if `data` is null, added to it if `accumulate`.
template <class T>
struct LossGradient {
  T* data = nullptr;
  bool accumulate = false;
};
// dx (+)= scale * d loss / dx, and dt likewise.
void loss_backward(Loss loss, double delta, double scale, const float* x, const float* t,
                   std::int64_t n, LossGradient<float> dx, LossGradient<float> dt);
void loss_backward(Loss loss, double delta, double scale, const double* x, const double* t,
                   std::int64_t n, LossGradient<double> dx, LossGradient<double> dt);

}  // namespace norma::kernels
