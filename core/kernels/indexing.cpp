#include "core/kernels/indexing.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <vector>

#include "core/kernels/move.h"
#include "core/parallel.h"

namespace norma::kernels {
namespace {

// Elements of a chunk, and columns that a thread sums at once: eight lines of the cache in f64.
constexpr std::int64_t kChunk = 32768;
constexpr std::int64_t kColumns = 64;

std::int64_t grain(std::int64_t work) {
  return std::max<std::int64_t>(1, kChunk / std::max<std::int64_t>(1, work));
}

template <class T>
void gather_any(const T* x, const std::int64_t* index, std::int64_t outer, std::int64_t n,
                std::int64_t inner, std::int64_t m, T* y) {
  parallel_for(outer * m, grain(inner), [&](std::int64_t b, std::int64_t e) {
    for (std::int64_t r = b; r < e; ++r) {
      const T* from = x + r / m * n * inner;
      for (std::int64_t i = 0; i < inner; ++i) {
        y[r * inner + i] = from[index[r * inner + i] * inner + i];
      }
    }
  });
}

// Each (o, i) belongs to one thread, which walks along k.
template <class T>
void scatter_add_any(const std::int64_t* index, const T* source, std::int64_t outer, std::int64_t n,
                     std::int64_t inner, std::int64_t m, T* y) {
  const std::int64_t width = std::min(inner, kColumns);
  if (width == 0) return;
  const std::int64_t strips = (inner + width - 1) / width;
  parallel_for(outer * strips, grain(m * width), [&](std::int64_t b, std::int64_t e) {
    for (std::int64_t t = b; t < e; ++t) {
      const std::int64_t o = t / strips, first = t % strips * width;
      const std::int64_t last = std::min(inner, first + width);
      T* to = y + o * n * inner;
      for (std::int64_t k = 0; k < m; ++k) {
        const std::int64_t row = (o * m + k) * inner;
        for (std::int64_t i = first; i < last; ++i) {
          to[index[row + i] * inner + i] += source[row + i];
        }
      }
    }
  });
}

// The positions 0..count-1 in the order of their ids, equal ids in the order of the positions.
std::vector<std::int64_t> sorted_positions(const std::int64_t* ids, std::int64_t count,
                                           std::int64_t rows) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  if (rows > 8 * count) {
    std::iota(order.begin(), order.end(), std::int64_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [ids](std::int64_t a, std::int64_t b) { return ids[a] < ids[b]; });
    return order;
  }
  // Counting sort: first[r] is where the next position of id r goes.
  std::vector<std::int64_t> first(static_cast<std::size_t>(rows) + 1);
  for (std::int64_t k = 0; k < count; ++k) ++first[static_cast<std::size_t>(ids[k]) + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  for (std::int64_t k = 0; k < count; ++k) {
    order[static_cast<std::size_t>(first[static_cast<std::size_t>(ids[k])]++)] = k;
  }
  return order;
}

template <class T>
void add_rows_by_id_any(const T* dy, const std::int64_t* ids, std::int64_t count, std::int64_t rows,
                        std::int64_t width, std::int64_t padding_id, bool accumulate, T* dx) {
  const auto row_bytes = width * static_cast<std::int64_t>(sizeof(T));
  if (!accumulate) zero_rows(dx, row_bytes, rows, row_bytes);
  if (width == 0) return;
  const std::vector<std::int64_t> order = sorted_positions(ids, count, rows);
  const std::int64_t strips = (width + kColumns - 1) / kColumns;
  const auto sum_strip = [&](std::int64_t c, std::int64_t cols) {
    double sum[kColumns];
    for (std::size_t k = 0; k < order.size();) {
      const std::int64_t id = ids[order[k]];
      T* to = dx + id * width + c;
      std::size_t end = k;
      while (end < order.size() && ids[order[end]] == id) ++end;
      if (id == padding_id) {
        k = end;
        continue;
      }
      if (end - k == 1) {
        // for (i < cols) to[i] += from[i]: the common case needs no f64.
        const T* from = dy + order[k++] * width + c;
        for (std::int64_t i = 0; i < cols; ++i) to[i] += from[i];
        continue;
      }
      for (std::int64_t i = 0; i < cols; ++i) sum[i] = static_cast<double>(to[i]);
      for (; k < end; ++k) {
        const T* from = dy + order[k] * width + c;
        for (std::int64_t i = 0; i < cols; ++i) sum[i] += static_cast<double>(from[i]);
      }
      for (std::int64_t i = 0; i < cols; ++i) to[i] = static_cast<T>(sum[i]);
    }
  };
  parallel_for(strips, grain(count * kColumns), [&](std::int64_t b, std::int64_t e) {
    for (std::int64_t s = b; s < e; ++s) {
      sum_strip(s * kColumns, std::min(kColumns, width - s * kColumns));
    }
  });
}

}  // namespace

void gather(const void* x, const std::int64_t* index, std::int64_t outer, std::int64_t n,
            std::int64_t inner, std::int64_t m, std::int64_t bytes, void* y) {
  const auto run = [&]<class T>() {
    gather_any(static_cast<const T*>(x), index, outer, n, inner, m, static_cast<T*>(y));
  };
  switch (bytes) {
    case 1:
      return run.operator()<std::uint8_t>();
    case 2:
      return run.operator()<std::uint16_t>();
    case 4:
      return run.operator()<std::uint32_t>();
    default:
      return run.operator()<std::uint64_t>();
  }
}

void scatter_add(const std::int64_t* index, const float* source, std::int64_t outer, std::int64_t n,
                 std::int64_t inner, std::int64_t m, float* y) {
  scatter_add_any(index, source, outer, n, inner, m, y);
}
void scatter_add(const std::int64_t* index, const double* source, std::int64_t outer,
                 std::int64_t n, std::int64_t inner, std::int64_t m, double* y) {
  scatter_add_any(index, source, outer, n, inner, m, y);
}

void gather_rows(const void* x, const std::int64_t* ids, std::int64_t count, std::int64_t row_bytes,
                 void* y) {
  const auto* from = static_cast<const std::byte*>(x);
  auto* to = static_cast<std::byte*>(y);
  parallel_for(count, grain(row_bytes / 4), [&](std::int64_t b, std::int64_t e) {
    for (std::int64_t k = b; k < e; ++k) {
      std::memcpy(to + k * row_bytes, from + ids[k] * row_bytes,
                  static_cast<std::size_t>(row_bytes));
    }
  });
}

void add_rows_by_id(const float* dy, const std::int64_t* ids, std::int64_t count, std::int64_t rows,
                    std::int64_t width, std::int64_t padding_id, bool accumulate, float* dx) {
  add_rows_by_id_any(dy, ids, count, rows, width, padding_id, accumulate, dx);
}
void add_rows_by_id(const double* dy, const std::int64_t* ids, std::int64_t count,
                    std::int64_t rows, std::int64_t width, std::int64_t padding_id, bool accumulate,
                    double* dx) {
  add_rows_by_id_any(dy, ids, count, rows, width, padding_id, accumulate, dx);
}

}  // namespace norma::kernels
