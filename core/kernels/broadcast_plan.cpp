#include <algorithm>

#include "core/kernels/divide.h"
#include "core/kernels/pointwise.h"
#include "core/parallel.h"

namespace norma::kernels {

std::int64_t BroadcastPlan::rows() const {
  std::int64_t n = 1;
  for (int i = 0; i + 1 < rank; ++i) n *= sizes[i];
  return n;
}

BroadcastPlan broadcast_plan(const Shape& out, std::initializer_list<const Shape*> operands) {
  // Built from the last axis on, so axes stand in reverse order until the end.
  BroadcastPlan reversed;
  std::int64_t dense[3] = {1, 1, 1};
  for (int axis = out.rank() - 1; axis >= 0; --axis) {
    const std::int64_t size = out[axis];
    std::int64_t stride[3] = {};
    int k = 0;
    for (const Shape* shape : operands) {
      const int own = axis - (out.rank() - shape->rank());
      const std::int64_t own_size = own >= 0 ? (*shape)[own] : 1;
      stride[k] = own_size == 1 ? 0 : dense[k];
      dense[k] *= own_size;
      ++k;
    }
    if (size == 1) continue;
    const int last = reversed.rank - 1;
    bool joins = last >= 0;
    for (int j = 0; j < k && joins; ++j) {
      joins = stride[j] == reversed.strides[j][last] * reversed.sizes[last];
    }
    if (joins) {
      reversed.sizes[last] *= size;
      continue;
    }
    reversed.sizes[reversed.rank] = size;
    for (int j = 0; j < k; ++j) reversed.strides[j][reversed.rank] = stride[j];
    ++reversed.rank;
  }
  while (reversed.rank < 2) reversed.sizes[reversed.rank++] = 1;
  BroadcastPlan plan;
  plan.rank = reversed.rank;
  for (int i = 0; i < plan.rank; ++i) {
    plan.sizes[i] = reversed.sizes[plan.rank - 1 - i];
    for (int j = 0; j < 3; ++j) plan.strides[j][i] = reversed.strides[j][plan.rank - 1 - i];
  }
  return plan;
}

namespace detail {
namespace {

// Sets the slab's offsets to those of row `row` of the plan.
void seek(const BroadcastPlan& plan, std::int64_t row, Slab& slab) {
  for (int j = 0; j < 3; ++j) slab.in[j] = 0;
  for (int axis = plan.rank - 2; axis >= 0; --axis) {
    const std::int64_t index = row % plan.sizes[axis];
    row /= plan.sizes[axis];
    for (int j = 0; j < 3; ++j) slab.in[j] += index * plan.strides[j][axis];
  }
}

}  // namespace

void walk(const BroadcastPlan& plan, void (*body)(void*, const Slab&), void* context) {
  const std::int64_t rows = plan.rows();
  const std::int64_t cols = plan.cols();
  if (rows == 0 || cols == 0) return;
  Slab part;
  for (int j = 0; j < 3; ++j) {
    part.row_stride[j] = plan.strides[j][plan.rank - 2];
    part.col_stride[j] = plan.strides[j][plan.rank - 1];
  }
  if (cols > kPointwiseGrain) {
    // Long rows: a chunk is a part of one row.
    const std::int64_t pieces = divide_up(cols, kPointwiseGrain);
    parallel_for(rows * pieces, 1, [&](std::int64_t begin, std::int64_t) {
      Slab slab = part;
      seek(plan, begin / pieces, slab);
      const std::int64_t first = begin % pieces * kPointwiseGrain;
      slab.rows = 1;
      slab.cols = std::min(kPointwiseGrain, cols - first);
      slab.out = begin / pieces * cols + first;
      for (int j = 0; j < 3; ++j) slab.in[j] += first * slab.col_stride[j];
      body(context, slab);
    });
    return;
  }
  const std::int64_t run = plan.sizes[plan.rank - 2];
  parallel_for(rows, row_grain(rows, cols, kPointwiseGrain),
               [&](std::int64_t begin, std::int64_t end) {
                 Slab slab = part;
                 slab.cols = cols;
                 for (std::int64_t row = begin; row < end; row += slab.rows) {
                   seek(plan, row, slab);
                   slab.rows = std::min(end - row, run - row % run);
                   slab.out = row * cols;
                   body(context, slab);
                 }
               });
}

}  // namespace detail

template <class T>
void broadcast_copy(const BroadcastPlan& plan, const T* x, T* y) {
  for_each_slab(plan, [&](const Slab& s) {
    for (std::int64_t r = 0; r < s.rows; ++r) {
      const T* from = x + s.in[0] + r * s.row_stride[0];
      T* to = y + s.out + r * s.cols;
      if (s.col_stride[0] == 1) {
        std::copy_n(from, s.cols, to);
      } else {
        std::fill_n(to, s.cols, *from);
      }
    }
  });
}

#define NORMA_INSTANTIATE(T) template void broadcast_copy(const BroadcastPlan&, const T*, T*);
NORMA_INSTANTIATE(float)
NORMA_INSTANTIATE(double)
NORMA_INSTANTIATE(bf16)
NORMA_INSTANTIATE(f16)
NORMA_INSTANTIATE(std::int32_t)
NORMA_INSTANTIATE(std::int64_t)
NORMA_INSTANTIATE(std::uint8_t)
#undef NORMA_INSTANTIATE

}  // namespace norma::kernels
