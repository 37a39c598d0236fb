#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/indexing.cpp"
#include "hwy/foreach_target.h"  // must come before the vector headers
//
#include "core/kernels/divide.h"
#include "core/kernels/indexing.h"
#include "core/kernels/wide-inl.h"

HWY_BEFORE_NAMESPACE();
namespace norma::kernels::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// for (k < count) for (i < cols) to[i] += dy[positions[k] * width + i]; each sum in f64, rounded
// once.
template <class T>
HWY_INLINE void add_rows_at(const T* dy, const std::int64_t* positions, std::int64_t count,
                            std::int64_t width, std::int64_t cols, T* to) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(WideTag()));
  std::int64_t c = 0;
  for (; c + 4 * lanes <= cols; c += 4 * lanes) {
    auto s0 = load_f64(to + c), s1 = load_f64(to + c + lanes);
    auto s2 = load_f64(to + c + 2 * lanes), s3 = load_f64(to + c + 3 * lanes);
    for (std::int64_t k = 0; k < count; ++k) {
      const T* from = dy + positions[k] * width + c;
      s0 = hn::Add(s0, load_f64(from));
      s1 = hn::Add(s1, load_f64(from + lanes));
      s2 = hn::Add(s2, load_f64(from + 2 * lanes));
      s3 = hn::Add(s3, load_f64(from + 3 * lanes));
    }
    store_f64(s0, to + c);
    store_f64(s1, to + c + lanes);
    store_f64(s2, to + c + 2 * lanes);
    store_f64(s3, to + c + 3 * lanes);
  }
  for (; c < cols; ++c) {
    auto sum = static_cast<double>(to[c]);
    for (std::int64_t k = 0; k < count; ++k) {
      sum += static_cast<double>(dy[positions[k] * width + c]);
    }
    to[c] = static_cast<T>(sum);
  }
}

void add_rows_f32(const float* dy, const std::int64_t* positions, std::int64_t count,
                  std::int64_t width, std::int64_t cols, float* to) {
  add_rows_at(dy, positions, count, width, cols, to);
}
void add_rows_f64(const double* dy, const std::int64_t* positions, std::int64_t count,
                  std::int64_t width, std::int64_t cols, double* to) {
  add_rows_at(dy, positions, count, width, cols, to);
}

}  // namespace
}  // namespace norma::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <vector>

#include "core/kernels/move.h"
#include "core/parallel.h"

namespace norma::kernels {

HWY_EXPORT(add_rows_f32);
HWY_EXPORT(add_rows_f64);

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
  const std::int64_t strips = divide_up(inner, width);
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

void add_rows(const float* dy, const std::int64_t* positions, std::int64_t count,
              std::int64_t width, std::int64_t cols, float* to) {
  HWY_DYNAMIC_DISPATCH(add_rows_f32)(dy, positions, count, width, cols, to);
}
void add_rows(const double* dy, const std::int64_t* positions, std::int64_t count,
              std::int64_t width, std::int64_t cols, double* to) {
  HWY_DYNAMIC_DISPATCH(add_rows_f64)(dy, positions, count, width, cols, to);
}

template <class T>
void add_rows_by_id_any(const T* dy, const std::int64_t* ids, std::int64_t count, std::int64_t rows,
                        std::int64_t width, std::int64_t padding_id, bool accumulate, T* dx) {
  const auto row_bytes = width * static_cast<std::int64_t>(sizeof(T));
  if (!accumulate) zero_rows(dx, row_bytes, rows, row_bytes);
  if (width == 0) return;
  const std::vector<std::int64_t> order = sorted_positions(ids, count, rows);
  const std::int64_t strips = divide_up(width, kColumns);
  const auto sum_strip = [&](std::int64_t c, std::int64_t cols) {
    for (std::size_t k = 0; k < order.size();) {
      const std::int64_t id = ids[order[k]];
      std::size_t end = k;
      while (end < order.size() && ids[order[end]] == id) ++end;
      if (id != padding_id) {
        add_rows(dy + c, order.data() + k, static_cast<std::int64_t>(end - k), width, cols,
                 dx + id * width + c);
      }
      k = end;
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
  parallel_for(count, row_grain(count, row_bytes / 4, kChunk), [&](std::int64_t b, std::int64_t e) {
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
#endif  // HWY_ONCE
