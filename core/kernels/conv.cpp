#include "core/kernels/conv.h"

#include <algorithm>

#include "core/kernels/conv_depthwise.h"
#include "core/kernels/conv_unroll.h"
#include "core/kernels/conv_winograd.h"
#include "core/parallel.h"

namespace norma::kernels {
namespace {

bool is_depthwise(const ConvSizes& s) { return s.groups == s.channels && s.groups > 1; }

}  // namespace

template <class T>
void conv_forward(const ConvSizes& s, const T* x, const T* weight, const T* bias, T* y) {
  if (has_winograd(s)) return conv_winograd_forward(s, x, weight, bias, y);
  if (is_depthwise(s)) return conv_depthwise_forward(s, x, weight, bias, y);
  conv_unroll_forward(s, x, weight, bias, y);
}

template <class T>
void conv_backward_input(const ConvSizes& s, const T* dy, const T* weight, T* dx) {
  if (has_winograd(s)) return conv_winograd_backward_input(s, dy, weight, dx);
  if (is_depthwise(s)) return conv_depthwise_backward_input(s, dy, weight, dx);
  conv_unroll_backward_input(s, dy, weight, dx);
}

template <class T>
void conv_backward_weight(const ConvSizes& s, const T* x, const T* dy, bool accumulate,
                          T* dweight) {
  if (has_winograd(s)) return conv_winograd_backward_weight(s, x, dy, accumulate, dweight);
  if (is_depthwise(s)) return conv_depthwise_backward_weight(s, x, dy, accumulate, dweight);
  conv_unroll_backward_weight(s, x, dy, accumulate, dweight);
}

template <class T>
void conv_backward_bias(const ConvSizes& s, const T* dy, bool accumulate, T* dbias) {
  constexpr std::int64_t kRun = 4096;  // terms that are summed in T
  const std::int64_t pixels = s.out_pixels();
  const std::int64_t grain = 32768 / std::max<std::int64_t>(1, s.n * pixels) + 1;
  parallel_for(s.outputs, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t o = begin; o < end; ++o) {
      double sum = accumulate ? static_cast<double>(dbias[o]) : 0.0;
      for (std::int64_t i = 0; i < s.n; ++i) {
        const T* row = dy + (i * s.outputs + o) * pixels;
        for (std::int64_t p = 0; p < pixels; p += kRun) {
          // Eight sums side by side, for the compiler to hold in vectors.
          T part[8] = {};
          const std::int64_t last = std::min(pixels, p + kRun);
          std::int64_t q = p;
          for (; q + 8 <= last; q += 8) {
            for (int k = 0; k < 8; ++k) part[k] += row[q + k];
          }
          for (; q < last; ++q) part[0] += row[q];
          for (T v : part) sum += static_cast<double>(v);
        }
      }
      dbias[o] = static_cast<T>(sum);
    }
  });
}

#define NORMA_INSTANTIATE(T)                                                          \
  template void conv_forward(const ConvSizes&, const T*, const T*, const T*, T*);     \
  template void conv_backward_input(const ConvSizes&, const T*, const T*, T*);        \
  template void conv_backward_weight(const ConvSizes&, const T*, const T*, bool, T*); \
  template void conv_backward_bias(const ConvSizes&, const T*, bool, T*);
NORMA_INSTANTIATE(float)
NORMA_INSTANTIATE(double)
#undef NORMA_INSTANTIATE

}  // namespace norma::kernels
