// Elementwise kernels on raw memory, and the walk over broadcast operands.
//
// All of them run on several threads in chunks of kPointwiseGrain; see Note [Fixed chunks].
#pragma once

#include <cstdint>
#include <initializer_list>

#include "core/dtype.h"
#include "core/shape.h"

namespace norma::kernels {

// Elements of a chunk: 64 KiB of f32, so that a chunk stays in the second-level cache and its work
// hides what it costs to start a thread.
inline constexpr std::int64_t kPointwiseGrain = 16384;

// --- Memory. -----------------------------------------------------------------------------------
// y[i] += x[i]; half types add in f32 and round once.
void add_inplace(float* y, const float* x, std::int64_t n);
void add_inplace(double* y, const double* x, std::int64_t n);
void add_inplace(bf16* y, const bf16* x, std::int64_t n);
void add_inplace(f16* y, const f16* x, std::int64_t n);
// y[i] += a * x[i].
void axpy(float a, const float* x, float* y, std::int64_t n);
void axpy(double a, const double* x, double* y, std::int64_t n);
// y[i] *= a.
void scale(float a, float* y, std::int64_t n);
void scale(double a, double* y, std::int64_t n);
// y[i] = value. T is any element type.
template <class T>
void fill(T value, T* y, std::int64_t n);
// y = x; the ranges do not overlap.
void copy_bytes(const void* x, void* y, std::int64_t bytes);
template <class T>
void copy(const T* x, T* y, std::int64_t n) {
  copy_bytes(x, y, n * static_cast<std::int64_t>(sizeof(T)));
}

// --- Broadcasting. -----------------------------------------------------------------------------
// How up to three operands run beside a contiguous output: the fewest axes that describe it, at
// least two, the last one contiguous or constant (stride 0) in every operand.
struct BroadcastPlan {
  int rank = 0;
  std::int64_t sizes[kMaxRank + 2] = {};
  std::int64_t strides[3][kMaxRank + 2] = {};  // in elements; 0 where the operand repeats
  [[nodiscard]] std::int64_t rows() const;     // product of all sizes but the last
  [[nodiscard]] std::int64_t cols() const { return sizes[rank - 1]; }
};
// Every operand must broadcast to `out`.
[[nodiscard]] BroadcastPlan broadcast_plan(const Shape& out,
                                           std::initializer_list<const Shape*> operands);

// Part of a plan: `rows` x `cols` elements of the output from `out` on.
struct Slab {
  std::int64_t out = 0;  // offsets in elements
  std::int64_t in[3] = {};
  std::int64_t row_stride[3] = {};
  std::int64_t col_stride[3] = {};  // 0 or 1
  std::int64_t rows = 0;
  std::int64_t cols = 0;
};
namespace detail {
void walk(const BroadcastPlan& plan, void (*body)(void*, const Slab&), void* context);
}
// Calls f(slab) for all parts of the output, on several threads.
template <class F>
void for_each_slab(const BroadcastPlan& plan, F&& f) {
  detail::walk(
      plan, [](void* c, const Slab& slab) { (*static_cast<F*>(c))(slab); },
      const_cast<void*>(static_cast<const void*>(&f)));
}

// `maximum` and `minimum` give NaN if an operand is one. `share_max`(a, b) is the part of the
// gradient of max(a, b) that belongs to a: 1 if a > b, 1/2 if equal, else 0.
enum class Binary { add, sub, mul, div, maximum, minimum, share_max };
// y = op(a, b), with operands 0 and 1 of the plan.
void binary(Binary op, const BroadcastPlan& plan, const float* a, const float* b, float* y);
void binary(Binary op, const BroadcastPlan& plan, const double* a, const double* b, double* y);

// y = x, with operand 0 of the plan.
template <class T>
void broadcast_copy(const BroadcastPlan& plan, const T* x, T* y);

// y[o, i] = sum over r of x[o, r, i]. Sums of f32 run in f64 after at most 32 terms.
void sum_middle(const float* x, std::int64_t outer, std::int64_t middle, std::int64_t inner,
                float* y);
void sum_middle(const double* x, std::int64_t outer, std::int64_t middle, std::int64_t inner,
                double* y);

}  // namespace norma::kernels
