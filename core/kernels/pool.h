// Pooling of images in NCHW order.
#pragma once

#include <cstdint>

namespace norma::kernels {

// Windows over `planes` images of (h, w).
struct PoolSizes {
  std::int64_t planes = 0, h = 0, w = 0, out_h = 0, out_w = 0;
  std::int64_t kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1;
  std::int64_t padding_h = 0, padding_w = 0;
};

// y = the largest element of each window, the padding left out; NaN if there is one. `index` (may
// be null) gets its position in the image, i * w + j: the first in row-major order of equal ones,
// the first NaN if there is one.
template <class T>
void max_pool_forward(const PoolSizes& s, const T* x, T* y, std::int32_t* index);
// dx = the sum of the gradients of the windows that chose an element, or added to dx.
template <class T>
void max_pool_backward(const PoolSizes& s, const T* dy, const std::int32_t* index, bool accumulate,
                       T* dx);

// y = the sum of each window / (kernel_h kernel_w): the padding counts.
template <class T>
void avg_pool_forward(const PoolSizes& s, const T* x, T* y);
template <class T>
void avg_pool_backward(const PoolSizes& s, const T* dy, bool accumulate, T* dx);

// y (planes) = the mean of each plane of `pixels` elements, summed in f64 after at most 512 terms.
template <class T>
void mean_planes_forward(std::int64_t planes, std::int64_t pixels, const T* x, T* y);
template <class T>
void mean_planes_backward(std::int64_t planes, std::int64_t pixels, const T* dy, bool accumulate,
                          T* dx);

}  // namespace norma::kernels
