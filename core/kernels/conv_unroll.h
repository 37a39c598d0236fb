// Convolution through matrix products: see Note [Paths of a convolution] in conv.h.
#pragma once

#include "core/kernels/conv.h"

namespace norma::kernels {

// The functions of conv.h for any sizes.
template <class T>
void conv_unroll_forward(const ConvSizes& s, const T* x, const T* weight, const T* bias, T* y);
template <class T>
void conv_unroll_backward_input(const ConvSizes& s, const T* dy, const T* weight, T* dx);
template <class T>
void conv_unroll_backward_weight(const ConvSizes& s, const T* x, const T* dy, bool accumulate,
                                 T* dweight);

}  // namespace norma::kernels
