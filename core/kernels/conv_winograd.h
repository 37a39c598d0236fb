// Winograd's F(2 x 2, 3 x 3): see Note [Paths of a convolution] in conv.h.
#pragma once

#include "core/kernels/conv.h"

namespace norma::kernels {

// True iff the functions below compute this convolution and are worth it.
[[nodiscard]] bool has_winograd(const ConvSizes& s);

// The functions of conv.h.
void conv_winograd_forward(const ConvSizes& s, const float* x, const float* weight,
                           const float* bias, float* y);
void conv_winograd_forward(const ConvSizes& s, const double* x, const double* weight,
                           const double* bias, double* y);
void conv_winograd_backward_input(const ConvSizes& s, const float* dy, const float* weight,
                                  float* dx);
void conv_winograd_backward_input(const ConvSizes& s, const double* dy, const double* weight,
                                  double* dx);
void conv_winograd_backward_weight(const ConvSizes& s, const float* x, const float* dy,
                                   bool accumulate, float* dweight);
void conv_winograd_backward_weight(const ConvSizes& s, const double* x, const double* dy,
                                   bool accumulate, double* dweight);

}  // namespace norma::kernels
