#include "core/kernels/move.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "core/kernels/divide.h"
#include "core/parallel.h"

namespace norma::kernels {
namespace {

// Bytes of a chunk; and elements a side of the square that a transpose moves at once, so that its
// rows and its columns stay in the first-level cache.
constexpr std::int64_t kChunkBytes = 131072;
constexpr std::int64_t kTile = 32;

template <class F>
void for_row_ranges(std::int64_t rows, std::int64_t bytes, F f) {
  parallel_for(rows, std::max<std::int64_t>(1, kChunkBytes / std::max<std::int64_t>(1, bytes)), f);
}

std::byte* at(void* p, std::int64_t offset) { return static_cast<std::byte*>(p) + offset; }
const std::byte* at(const void* p, std::int64_t offset) {
  return static_cast<const std::byte*>(p) + offset;
}

template <class T>
void add_rows_any(const T* x, std::int64_t x_stride, T* y, std::int64_t y_stride, std::int64_t rows,
                  std::int64_t cols) {
  for_row_ranges(rows, cols * static_cast<std::int64_t>(sizeof(T)),
                 [&](std::int64_t b, std::int64_t e) {
                   for (std::int64_t r = b; r < e; ++r) {
                     const T* from = x + r * x_stride;
                     T* to = y + r * y_stride;
                     for (std::int64_t i = 0; i < cols; ++i) to[i] += from[i];
                   }
                 });
}

// The axes of y, outermost first, with the step of each in x; neighbours that move together are
// one axis, axes of size 1 are gone.
struct Walk {
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> steps;  // in elements of x
};

Walk plan(const Shape& shape, std::span<const int> axes) {
  std::vector<std::int64_t> strides(static_cast<std::size_t>(shape.rank()), 1);
  for (int i = shape.rank() - 2; i >= 0; --i) {
    const auto k = static_cast<std::size_t>(i);
    strides[k] = strides[k + 1] * shape[i + 1];
  }
  Walk walk;
  for (int axis : axes) {
    const std::int64_t size = shape[axis];
    const std::int64_t step = strides[static_cast<std::size_t>(axis)];
    if (size == 1) continue;
    if (!walk.sizes.empty() && walk.steps.back() == step * size) {
      walk.sizes.back() *= size;
      walk.steps.back() = step;
    } else {
      walk.sizes.push_back(size);
      walk.steps.push_back(step);
    }
  }
  return walk;
}

// The offset in x of the item with number `index` among the axes first..last-1 of the walk.
std::int64_t offset_of(const Walk& walk, std::int64_t index, std::span<const std::size_t> outer) {
  std::int64_t offset = 0;
  for (std::size_t k = outer.size(); k-- > 0;) {
    const std::size_t axis = outer[k];
    offset += index % walk.sizes[axis] * walk.steps[axis];
    index /= walk.sizes[axis];
  }
  return offset;
}

// y[c * y_step + r] = x[r * x_step + c] for r < rows, c < cols, both at most kTile.
template <class T>
void transpose_tile(const T* x, std::int64_t x_step, std::int64_t rows, std::int64_t cols, T* y,
                    std::int64_t y_step) {
  T tile[kTile][kTile];
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* from = x + r * x_step;
    for (std::int64_t c = 0; c < cols; ++c) tile[c][r] = from[c];
  }
  for (std::int64_t c = 0; c < cols; ++c) std::copy_n(tile[c], rows, y + c * y_step);
}

// The innermost axis of y steps through x: tiles over it and over the axis that is contiguous in x.
template <class T>
void permute_tiles(const T* x, const Walk& walk, T* y) {
  const std::size_t last = walk.sizes.size() - 1;
  const std::size_t dense = static_cast<std::size_t>(
      std::find(walk.steps.begin(), walk.steps.end(), 1) - walk.steps.begin());
  std::vector<std::int64_t> y_strides(walk.sizes.size(), 1);
  for (std::size_t k = last; k-- > 0;) y_strides[k] = y_strides[k + 1] * walk.sizes[k + 1];
  std::vector<std::size_t> outer;
  std::int64_t batches = 1;
  for (std::size_t k = 0; k < last; ++k) {
    if (k == dense) continue;
    outer.push_back(k);
    batches *= walk.sizes[k];
  }
  const std::int64_t rows = walk.sizes[last], cols = walk.sizes[dense];
  const std::int64_t row_tiles = divide_up(rows, kTile);
  const std::int64_t col_tiles = divide_up(cols, kTile);
  const std::int64_t tile_bytes =
      std::min(rows, kTile) * std::min(cols, kTile) * static_cast<std::int64_t>(sizeof(T));
  for_row_ranges(batches * col_tiles * row_tiles, tile_bytes, [&](std::int64_t b, std::int64_t e) {
    for (std::int64_t t = b; t < e; ++t) {
      const std::int64_t r = t % row_tiles * kTile;
      const std::int64_t c = t / row_tiles % col_tiles * kTile;
      const std::int64_t batch = t / row_tiles / col_tiles;
      std::int64_t to = c * y_strides[dense] + r;
      std::int64_t rest = batch;
      for (std::size_t k = outer.size(); k-- > 0;) {
        to += rest % walk.sizes[outer[k]] * y_strides[outer[k]];
        rest /= walk.sizes[outer[k]];
      }
      transpose_tile(x + offset_of(walk, batch, outer) + r * walk.steps[last] + c, walk.steps[last],
                     std::min(kTile, rows - r), std::min(kTile, cols - c), y + to,
                     y_strides[dense]);
    }
  });
}

// The innermost axis is contiguous in both: runs are copied.
void permute_runs(const void* x, const Walk& walk, std::int64_t bytes, void* y) {
  const std::size_t last = walk.sizes.size() - 1;
  const std::int64_t run = walk.sizes[last] * bytes;
  std::vector<std::size_t> outer;
  std::int64_t runs = 1;
  for (std::size_t k = 0; k < last; ++k) {
    outer.push_back(k);
    runs *= walk.sizes[k];
  }
  const std::int64_t inner = last > 0 ? walk.sizes[last - 1] : 1;
  const std::int64_t step = last > 0 ? walk.steps[last - 1] * bytes : 0;
  for_row_ranges(runs, run, [&](std::int64_t b, std::int64_t e) {
    for (std::int64_t r = b; r < e;) {
      const std::int64_t stop = std::min(e, r + inner - r % inner);
      const std::byte* from = at(x, offset_of(walk, r, outer) * bytes);
      for (; r < stop; ++r, from += step) {
        std::memcpy(at(y, r * run), from, static_cast<std::size_t>(run));
      }
    }
  });
}

}  // namespace

void copy_rows(const void* x, std::int64_t x_stride, void* y, std::int64_t y_stride,
               std::int64_t rows, std::int64_t bytes) {
  if (x_stride == bytes && y_stride == bytes) {
    // One long run, cut into chunks.
    parallel_for(rows * bytes, kChunkBytes, [&](std::int64_t b, std::int64_t e) {
      std::memcpy(at(y, b), at(x, b), static_cast<std::size_t>(e - b));
    });
    return;
  }
  for_row_ranges(rows, bytes, [&](std::int64_t b, std::int64_t e) {
    for (std::int64_t r = b; r < e; ++r) {
      std::memcpy(at(y, r * y_stride), at(x, r * x_stride), static_cast<std::size_t>(bytes));
    }
  });
}

void zero_rows(void* y, std::int64_t stride, std::int64_t rows, std::int64_t bytes) {
  if (stride == bytes) {
    parallel_for(rows * bytes, kChunkBytes, [&](std::int64_t b, std::int64_t e) {
      std::memset(at(y, b), 0, static_cast<std::size_t>(e - b));
    });
    return;
  }
  for_row_ranges(rows, bytes, [&](std::int64_t b, std::int64_t e) {
    for (std::int64_t r = b; r < e; ++r) {
      std::memset(at(y, r * stride), 0, static_cast<std::size_t>(bytes));
    }
  });
}

void add_rows(const float* x, std::int64_t x_stride, float* y, std::int64_t y_stride,
              std::int64_t rows, std::int64_t cols) {
  add_rows_any(x, x_stride, y, y_stride, rows, cols);
}
void add_rows(const double* x, std::int64_t x_stride, double* y, std::int64_t y_stride,
              std::int64_t rows, std::int64_t cols) {
  add_rows_any(x, x_stride, y, y_stride, rows, cols);
}

void permute(const void* x, const Shape& shape, std::span<const int> axes, std::int64_t bytes,
             void* y) {
  if (shape.numel() == 0) return;
  const Walk walk = plan(shape, axes);
  if (walk.sizes.size() <= 1) return copy_rows(x, bytes, y, bytes, shape.numel(), bytes);
  if (walk.steps.back() == 1) return permute_runs(x, walk, bytes, y);
  switch (bytes) {
    case 1:
      return permute_tiles(static_cast<const std::uint8_t*>(x), walk,
                           static_cast<std::uint8_t*>(y));
    case 2:
      return permute_tiles(static_cast<const std::uint16_t*>(x), walk,
                           static_cast<std::uint16_t*>(y));
    case 4:
      return permute_tiles(static_cast<const std::uint32_t*>(x), walk,
                           static_cast<std::uint32_t*>(y));
    default:
      return permute_tiles(static_cast<const std::uint64_t*>(x), walk,
                           static_cast<std::uint64_t*>(y));
  }
}

}  // namespace norma::kernels
