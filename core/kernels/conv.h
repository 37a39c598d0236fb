// Convolution of images in NCHW order.
//
// Note [Paths of a convolution]. Three kernels share one interface. A 3 x 3 kernel of stride 1 over
// 16 channels or more goes through Winograd's transform, which needs 16 multiplications where the
// sum needs 36. One input channel a group (depth-wise) runs on shifted rows. All else unrolls a
// block of the image, small enough for the second-level cache, into a matrix and multiplies.
#pragma once

#include <cstdint>

namespace norma::kernels {

// y[n, o, i, j] = bias[o] + sum over c, a, b of
//   x[n, c, i stride_h + a dilation_h - padding_h, j stride_w + b dilation_w - padding_w]
//   * weight[o, c - first channel of the group, a, b],
// with zeros outside of x. x (n, channels, h, w), weight (outputs, channels / groups, kernel_h,
// kernel_w), y (n, outputs, out_h, out_w).
struct ConvSizes {
  std::int64_t n = 0, channels = 0, h = 0, w = 0;
  std::int64_t outputs = 0, kernel_h = 1, kernel_w = 1, out_h = 0, out_w = 0;
  std::int64_t stride_h = 1, stride_w = 1, padding_h = 0, padding_w = 0;
  std::int64_t dilation_h = 1, dilation_w = 1, groups = 1;

  [[nodiscard]] std::int64_t in_pixels() const { return h * w; }
  [[nodiscard]] std::int64_t out_pixels() const { return out_h * out_w; }
  [[nodiscard]] std::int64_t group_channels() const { return channels / groups; }
  [[nodiscard]] std::int64_t group_outputs() const { return outputs / groups; }
  [[nodiscard]] std::int64_t taps() const { return kernel_h * kernel_w; }
};

// `bias` may be null.
template <class T>
void conv_forward(const ConvSizes& s, const T* x, const T* weight, const T* bias, T* y);
// dx = the gradient of x; its old content is not read.
template <class T>
void conv_backward_input(const ConvSizes& s, const T* dy, const T* weight, T* dx);
// dweight = the gradient of weight, or added to it if `accumulate`. Samples are summed in chunks
// whose number depends on the sizes alone, and the chunks in order.
template <class T>
void conv_backward_weight(const ConvSizes& s, const T* x, const T* dy, bool accumulate, T* dweight);
// dbias (outputs) = sum of dy over samples and pixels, in f64 after at most 4096 terms.
template <class T>
void conv_backward_bias(const ConvSizes& s, const T* dy, bool accumulate, T* dbias);

}  // namespace norma::kernels
