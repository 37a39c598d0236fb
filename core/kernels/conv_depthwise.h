// Convolution with one input channel a group: see Note [Paths of a convolution] in conv.h.
#pragma once

#include "core/kernels/conv.h"

namespace norma::kernels {

// The functions of conv.h where groups == channels.
void conv_depthwise_forward(const ConvSizes& s, const float* x, const float* weight,
                            const float* bias, float* y);
void conv_depthwise_forward(const ConvSizes& s, const double* x, const double* weight,
                            const double* bias, double* y);
void conv_depthwise_backward_input(const ConvSizes& s, const float* dy, const float* weight,
                                   float* dx);
void conv_depthwise_backward_input(const ConvSizes& s, const double* dy, const double* weight,
                                   double* dx);
void conv_depthwise_backward_weight(const ConvSizes& s, const float* x, const float* dy,
                                    bool accumulate, float* dweight);
void conv_depthwise_backward_weight(const ConvSizes& s, const double* x, const double* dy,
                                    bool accumulate, double* dweight);

}  // namespace norma::kernels
