// Elementwise functions of one operand, and powers.
#pragma once

#include <cstdint>

#include "core/kernels/pointwise.h"

namespace norma::kernels {

// `sign` is -1, 0, 1, or NaN of NaN. `rsqrt` is 1 / sqrt(x).
enum class Unary { neg, exp, log, sqrt, rsqrt, tanh, erf, sigmoid, abs, square, sign, sin, cos };

// y[i] = op(x[i]).
void unary(Unary op, const float* x, float* y, std::int64_t n);
void unary(Unary op, const double* x, double* y, std::int64_t n);

// y[i] = x[i]^p, as std::pow.
void power(const float* x, double p, float* y, std::int64_t n);
void power(const double* x, double p, double* y, std::int64_t n);
// y = a^b, with operands 0 and 1 of the plan.
void power(const BroadcastPlan& plan, const float* a, const float* b, float* y);
void power(const BroadcastPlan& plan, const double* a, const double* b, double* y);

}  // namespace norma::kernels
