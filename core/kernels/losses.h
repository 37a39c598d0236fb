// Elementwise losses and their gradients.
#pragma once

#include <cstdint>

namespace norma::kernels {

enum class Loss { mse, mae, huber, bce };

// The sum of the losses of n elements, in f64. `delta` is that of huber.
double loss_sum(Loss loss, double delta, const float* x, const float* t, std::int64_t n);
double loss_sum(Loss loss, double delta, const double* x, const double* t, std::int64_t n);

// dx (+)= scale * d loss / dx, and dt likewise; either may be null.
struct LossGradient {
  void* data = nullptr;
  bool accumulate = false;
};
void loss_backward(Loss loss, double delta, double scale, const float* x, const float* t,
                   std::int64_t n, LossGradient dx, LossGradient dt);
void loss_backward(Loss loss, double delta, double scale, const double* x, const double* t,
                   std::int64_t n, LossGradient dx, LossGradient dt);

}  // namespace norma::kernels
