#include "core/kernels/factored.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/kernels/divide.h"
#include "core/parallel.h"

namespace norma::kernels {
namespace {

constexpr std::int64_t kGrain = 32768;  // elements: below it a pass stays on one thread

std::int64_t rows_per_chunk(const FactoredShape& s) {
  return std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, s.cols));
}

// One over the mean of each matrix's row factors: v = row * col * scale.
template <class T>
std::vector<double> scales(const FactoredShape& s, double eps, const T* row) {
  std::vector<double> result(static_cast<std::size_t>(s.batch), 1);
  if (!s.factored) return result;
  for (std::int64_t b = 0; b < s.batch; ++b) {
    double sum = 0;
    for (std::int64_t r = 0; r < s.rows; ++r) sum += static_cast<double>(row[b * s.rows + r]);
    result[static_cast<std::size_t>(b)] = 1 / std::max(sum / static_cast<double>(s.rows), eps);
  }
  return result;
}

// Calls f(offset, u) for the elements of the given rows (of all matrices, numbered through).
template <class T, class F>
void for_updates(const FactoredShape& s, std::int64_t begin, std::int64_t end, const T* grad,
                 double grad_scale, double eps, const std::vector<double>& scale, const T* row,
                 const T* col, F&& f) {
  const T least = static_cast<T>(eps * eps);
  for (std::int64_t k = begin; k < end; ++k) {
    const std::int64_t b = k / s.rows;
    const T* second = s.factored ? col + b * s.cols : row;
    const T first =
        s.factored
            ? static_cast<T>(static_cast<double>(row[k]) * scale[static_cast<std::size_t>(b)])
            : T{1};
    for (std::int64_t c = 0; c < s.cols; ++c) {
      const T v = std::max(first * second[c], least);
      f(k * s.cols + c, grad[k * s.cols + c] * static_cast<T>(grad_scale) / std::sqrt(v));
    }
  }
}

}  // namespace

template <class T>
void factored_moments(const FactoredShape& s, const T* grad, double grad_scale, double part, T* row,
                      T* col) {
  const double square = grad_scale * grad_scale;
  const auto blend = [&](T& old, double now) {
    old = static_cast<T>(static_cast<double>(old) + part * (now - static_cast<double>(old)));
  };
  if (!s.factored) {
    for (std::int64_t c = 0; c < s.cols; ++c) {
      const double g = static_cast<double>(grad[c]);
      blend(row[c], g * g * square);
    }
    return;
  }
  parallel_for(s.batch * s.rows, rows_per_chunk(s), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k) {
      double sum = 0;
      for (std::int64_t c = 0; c < s.cols; ++c) {
        const double g = static_cast<double>(grad[k * s.cols + c]);
        sum += g * g;
      }
      blend(row[k], sum * square / static_cast<double>(s.cols));
    }
  });
  // A chunk owns some columns over all rows, so that no two threads share a sum.
  constexpr std::int64_t kColumns = 64;
  const std::int64_t blocks = divide_up(s.cols, kColumns);
  const std::int64_t per_chunk =
      std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, s.rows * kColumns));
  parallel_for(s.batch * blocks, per_chunk, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k) {
      const std::int64_t b = k / blocks, from = k % blocks * kColumns;
      const std::int64_t n = std::min(kColumns, s.cols - from);
      double sum[kColumns] = {};
      for (std::int64_t r = 0; r < s.rows; ++r) {
        const T* g = grad + (b * s.rows + r) * s.cols + from;
        for (std::int64_t c = 0; c < n; ++c) {
          sum[c] += static_cast<double>(g[c]) * static_cast<double>(g[c]);
        }
      }
      for (std::int64_t c = 0; c < n; ++c) {
        blend(col[b * s.cols + from + c], sum[c] * square / static_cast<double>(s.rows));
      }
    }
  });
}

template <class T>
double factored_sum_of_squares(const FactoredShape& s, const T* grad, double grad_scale, double eps,
                               const T* row, const T* col) {
  const std::vector<double> scale = scales(s, eps, row);
  return parallel_sum<double>(
      s.batch * s.rows, rows_per_chunk(s), [&](std::int64_t begin, std::int64_t end) {
        double sum = 0;
        for_updates(s, begin, end, grad, grad_scale, eps, scale, row, col, [&](std::int64_t, T u) {
          sum += static_cast<double>(u) * static_cast<double>(u);
        });
        return sum;
      });
}

template <class T>
void factored_update(const FactoredShape& s, const T* grad, double grad_scale, double eps,
                     double keep, double size, const T* row, const T* col, T* w) {
  const std::vector<double> scale = scales(s, eps, row);
  parallel_for(s.batch * s.rows, rows_per_chunk(s), [&](std::int64_t begin, std::int64_t end) {
    for_updates(s, begin, end, grad, grad_scale, eps, scale, row, col, [&](std::int64_t i, T u) {
      w[i] = static_cast<T>(keep) * w[i] - static_cast<T>(size) * u;
    });
  });
}

#define NORMA_INSTANTIATE(T)                                                                    \
  template void factored_moments(const FactoredShape&, const T*, double, double, T*, T*);       \
  template double factored_sum_of_squares(const FactoredShape&, const T*, double, double,       \
                                          const T*, const T*);                                  \
  template void factored_update(const FactoredShape&, const T*, double, double, double, double, \
                                const T*, const T*, T*);
NORMA_INSTANTIATE(float)
NORMA_INSTANTIATE(double)

}  // namespace norma::kernels
