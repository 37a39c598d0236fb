#include "core/kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/kernels/attention_task.h"
#include "core/kernels/divide.h"
#include "core/kernels/scratch.h"
#include "core/parallel.h"
#include "core/storage.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/attention.cpp"
#include "hwy/foreach_target.h"
// Behind foreach_target.h.
#include "core/kernels/attention_rows-inl.h"
#include "core/kernels/attention_tile-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace norma::kernels::HWY_NAMESPACE {
namespace {

// to[j] = 0 where mask[j] is 1, else -inf: to be added to a logit.
template <class T>
HWY_INLINE void AddedMask(const std::uint8_t* mask, std::int64_t n, T* to) {
  for (std::int64_t j = 0; j < n; ++j) {
    to[j] = mask[j] ? T{0} : -std::numeric_limits<T>::infinity();
  }
}

// The mask of a query at the keys of a tile, to be added; null without one.
template <class T>
HWY_INLINE const T* MaskOfRow(const AttentionTask<T>& a, std::int64_t b, std::int64_t query,
                              std::int64_t j0, std::int64_t cols, T* memory) {
  const AttentionShape& s = a.shape;
  if (!a.in.mask) return nullptr;
  if (s.mask_query_stride == 0) return memory + j0;  // one for all queries: see RunUnit
  AddedMask(a.in.mask + b * s.mask_sample_stride + query * s.mask_query_stride + j0, cols, memory);
  return memory;
}

template <class T>
HWY_NOINLINE void ForwardUnit(const AttentionTask<T>& a, std::int64_t b, std::int64_t kv_head,
                              const AttentionScratch<T>& m) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t step = HWY_MAX(lanes, std::int64_t{4});  // as dropout_row() begins
  const AttentionShape& s = a.shape;
  const std::int64_t kv_stride = s.kv_heads * s.width, q_stride = s.heads * s.width;
  const std::int64_t kv_at = b * s.keys * kv_stride + kv_head * s.width;
  const std::int64_t ld = a.width();
  PackTransposed(a.in.k + kv_at, kv_stride, s.keys, s.width, m.k_transposed, a.key_stride());
  PackRows(a.in.v + kv_at, kv_stride, s.keys, s.width, T{1}, m.v, ld);
  for (std::int64_t h = kv_head * a.group(); h < (kv_head + 1) * a.group(); ++h) {
    const std::int64_t head = b * s.heads + h;
    T largest = -std::numeric_limits<T>::infinity();
    for (std::int64_t i0 = 0; i0 < s.queries; i0 += kQueries) {
      const std::int64_t rows = HWY_MIN(kQueries, s.queries - i0);
      const std::int64_t q_at = (b * s.queries + i0) * q_stride + h * s.width;
      PackRows(a.in.q + q_at, q_stride, rows, s.width, static_cast<T>(a.query_factor()), m.q, ld);
      std::fill(m.max, m.max + rows, -std::numeric_limits<T>::infinity());
      std::fill(m.sum, m.sum + rows, T{0});
      const std::int64_t begin = a.first_key(i0) / step * step, end = a.end_key(i0 + rows - 1);
      if (end <= begin) std::fill(m.o, m.o + rows * ld, T{0});
      for (std::int64_t j0 = begin; j0 < end; j0 += kKeys) {
        const Tile t{i0, rows, j0, HWY_MIN(kKeys, end - j0)};
        const Band band = KeysOfQuery(a, t);
        const std::int64_t padded = round_up(t.cols, lanes);
        Multiply<false>(Product<T>{m.q,
                                   ld,
                                   m.k_transposed + j0,
                                   a.key_stride(),
                                   m.weights,
                                   a.kTileStride,
                                   rows,
                                   padded,
                                   s.width,
                                   false,
                                   band,
                                   {}});
        RowInputs<T> in;
        in.keep = m.keep;
        in.j0 = j0;
        in.largest = a.largest ? &largest : nullptr;
        for (std::int64_t r = 0; r < rows; ++r) {
          in.mask = MaskOfRow(a, b, i0 + r, j0, t.cols, m.mask);
          in.bias = a.in.bias ? a.in.bias + (h * s.queries + i0 + r) * s.keys + j0 : nullptr;
          in.row = head * s.queries + i0 + r;
          const T factor =
              ForwardRow(a, in, t.cols, a.first_key(i0 + r) - j0, a.end_key(i0 + r) - j0,
                         m.weights + r * a.kTileStride, m.max[r], m.sum[r]);
          if (j0 == begin || factor == T{1}) continue;
          for (std::int64_t e = 0; e < ld; ++e) m.o[r * ld + e] *= factor;
        }
        Multiply<false>(Product<T>{m.weights,
                                   a.kTileStride,
                                   m.v + j0 * ld,
                                   ld,
                                   m.o,
                                   ld,
                                   rows,
                                   ld,
                                   t.cols,
                                   j0 != begin,
                                   {},
                                   band});
      }
      for (std::int64_t r = 0; r < rows; ++r) {
        const bool nothing = m.max[r] == -std::numeric_limits<T>::infinity();
        const T inverse = m.sum[r] == T{0} ? T{0} : T{1} / m.sum[r];
        T* stats = a.stats + 2 * (head * s.queries + i0 + r);
        stats[0] = nothing ? T{0} : m.max[r];
        stats[1] = inverse;
        UnpackRows(m.o + r * ld, ld, 1, s.width, inverse, false, a.y_out + q_at + r * q_stride,
                   q_stride);
      }
    }
    if (a.largest) a.largest[head] = largest * static_cast<T>(s.scale / a.query_factor());
  }
}

template <class T>
HWY_NOINLINE void BackwardUnit(const AttentionTask<T>& a, std::int64_t b, std::int64_t kv_head,
                               const AttentionScratch<T>& m) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t step = HWY_MAX(lanes, std::int64_t{4});  // as dropout_row() begins
  const AttentionShape& s = a.shape;
  const std::int64_t kv_stride = s.kv_heads * s.width, q_stride = s.heads * s.width;
  const std::int64_t kv_at = b * s.keys * kv_stride + kv_head * s.width;
  const std::int64_t ld = a.width(), tile = a.kTileStride;
  const T* k = a.in.k + kv_at;
  const T* v = a.in.v + kv_at;
  const std::int64_t first_rows = HWY_MIN(kQueries, s.queries);
  const std::int64_t first_q = b * s.queries * q_stride + kv_head * a.group() * s.width;
  PrefetchRows(k, kv_stride, s.keys, s.width);
  PrefetchRows(v, kv_stride, s.keys, s.width);
  PrefetchRows(a.in.q + first_q, q_stride, first_rows, s.width);
  PrefetchRows(a.dy + first_q, q_stride, first_rows, s.width);
  PrefetchRows(a.y + first_q, q_stride, first_rows, s.width);
  PackTransposed(k, kv_stride, s.keys, s.width, m.k_transposed, a.key_stride());
  PackTransposed(v, kv_stride, s.keys, s.width, m.v_transposed, a.key_stride());
  PackRows(k, kv_stride, s.keys, s.width, T{1}, m.k, ld);
  std::fill(m.dk, m.dk + s.keys * ld, T{0});
  std::fill(m.dv, m.dv + s.keys * ld, T{0});
  for (std::int64_t h = kv_head * a.group(); h < (kv_head + 1) * a.group(); ++h) {
    const std::int64_t head = b * s.heads + h;
    for (std::int64_t i0 = 0; i0 < s.queries; i0 += kQueries) {
      const std::int64_t rows = HWY_MIN(kQueries, s.queries - i0);
      const std::int64_t q_at = (b * s.queries + i0) * q_stride + h * s.width;
      PackRows(a.in.q + q_at, q_stride, rows, s.width, static_cast<T>(a.query_factor()), m.q, ld);
      PackRows(a.dy + q_at, q_stride, rows, s.width, T{1}, m.dy, ld);
      for (std::int64_t r = 0; r < rows; ++r) {
        // for e: delta += dy[e] * y[e]
        const T* y = a.y + q_at + r * q_stride;
        auto delta = hn::Zero(d);
        for (std::int64_t e = 0; e < s.width; e += lanes) {
          const auto part =
              e + lanes <= s.width ? hn::LoadU(d, y + e) : LoadTail(d, y + e, s.width - e);
          delta = hn::MulAdd(hn::LoadU(d, m.dy + r * ld + e), part, delta);
        }
        m.sum[r] = SumLanes(d, delta);
      }
      const std::int64_t begin = a.first_key(i0) / step * step, end = a.end_key(i0 + rows - 1);
      if (end <= begin) std::fill(m.o, m.o + rows * ld, T{0});
      for (std::int64_t j0 = begin; j0 < end; j0 += kKeys) {
        const Tile t{i0, rows, j0, HWY_MIN(kKeys, end - j0)};
        const Band keys = KeysOfQuery(a, t), queries = QueriesOfKey(a, t);
        const std::int64_t padded = round_up(t.cols, lanes);
        Multiply<false>(Product<T>{m.q,
                                   ld,
                                   m.k_transposed + j0,
                                   a.key_stride(),
                                   m.weights,
                                   tile,
                                   rows,
                                   padded,
                                   s.width,
                                   false,
                                   keys,
                                   {}});
        Multiply<false>(Product<T>{m.dy,
                                   ld,
                                   m.v_transposed + j0,
                                   a.key_stride(),
                                   m.dweights,
                                   tile,
                                   rows,
                                   padded,
                                   s.width,
                                   false,
                                   keys,
                                   {}});
        RowInputs<T> in;
        in.keep = m.keep;
        in.j0 = j0;
        for (std::int64_t r = 0; r < rows; ++r) {
          in.mask = MaskOfRow(a, b, i0 + r, j0, t.cols, m.mask);
          const std::int64_t at = (h * s.queries + i0 + r) * s.keys + j0;
          in.bias = a.in.bias ? a.in.bias + at : nullptr;
          in.row = head * s.queries + i0 + r;
          const T* stats = a.stats + 2 * in.row;
          BackwardRow(a, in, t.cols, a.first_key(i0 + r) - j0, a.end_key(i0 + r) - j0, stats[0],
                      stats[1], m.sum[r], a.out.dbias ? a.out.dbias + at : nullptr,
                      m.weights + r * tile, m.dweights + r * tile);
        }
        Multiply<true>(Product<T>{
            m.weights, tile, m.dy, ld, m.dv + j0 * ld, ld, t.cols, ld, rows, true, {}, queries});
        Multiply<true>(Product<T>{
            m.dweights, tile, m.q, ld, m.dk + j0 * ld, ld, t.cols, ld, rows, true, {}, queries});
        Multiply<false>(Product<T>{
            m.dweights, tile, m.k + j0 * ld, ld, m.o, ld, rows, ld, t.cols, j0 != begin, {}, keys});
      }
      if (a.out.dq) {
        UnpackRows(m.o, ld, rows, s.width, static_cast<T>(s.scale), a.out.accumulate_dq,
                   a.out.dq + q_at, q_stride);
      }
    }
  }
  if (a.out.dk) {
    const T factor = static_cast<T>(s.softcap > 0 ? s.softcap : kLn2);  // scale / query_factor
    UnpackRows(m.dk, ld, s.keys, s.width, factor, a.out.accumulate_dk, a.out.dk + kv_at, kv_stride);
  }
  if (a.out.dv) {
    UnpackRows(m.dv, ld, s.keys, s.width, T{1}, a.out.accumulate_dv, a.out.dv + kv_at, kv_stride);
  }
}

template <class T>
HWY_INLINE void RunUnit(const AttentionTask<T>& a, std::int64_t b, std::int64_t kv_head,
                        T* memory) {
  const AttentionScratch<T> m(a, memory);
  if (a.in.mask) {
    std::fill(m.mask, m.mask + a.key_stride(), T{0});
    if (a.shape.mask_query_stride == 0) {
      AddedMask(a.in.mask + b * a.shape.mask_sample_stride, a.shape.keys, m.mask);
    }
  }
  a.dy ? BackwardUnit(a, b, kv_head, m) : ForwardUnit(a, b, kv_head, m);
}

void UnitF32(const AttentionTask<float>& a, std::int64_t b, std::int64_t kv_head, float* memory) {
  RunUnit(a, b, kv_head, memory);
}
void UnitF64(const AttentionTask<double>& a, std::int64_t b, std::int64_t kv_head, double* memory) {
  RunUnit(a, b, kv_head, memory);
}

}  // namespace
}  // namespace norma::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace norma::kernels {
namespace {

HWY_EXPORT(UnitF32);
HWY_EXPORT(UnitF64);

void unit(const AttentionTask<float>& a, std::int64_t b, std::int64_t kv_head, float* memory) {
  HWY_DYNAMIC_DISPATCH(UnitF32)(a, b, kv_head, memory);
}
void unit(const AttentionTask<double>& a, std::int64_t b, std::int64_t kv_head, double* memory) {
  HWY_DYNAMIC_DISPATCH(UnitF64)(a, b, kv_head, memory);
}

constexpr std::int64_t kKept = std::int64_t{4} << 20;  // bytes of scratch that a thread keeps

template <class T>
void run(const AttentionTask<T>& a) {
  const AttentionShape& s = a.shape;
  const std::int64_t units = s.batch * s.kv_heads;
  if (units == 0) return;
  const std::int64_t size = AttentionScratch<T>(a, nullptr).size;
  const std::int64_t bytes = size * static_cast<std::int64_t>(sizeof(T));
  // A gradient of the bias sums over the batch: then a head belongs to one thread, sample by
  // sample.
  const bool by_head = a.out.dbias != nullptr;
  const std::int64_t items = by_head ? s.kv_heads : units;
  const std::int64_t work = std::max<std::int64_t>(
      1, units / items * a.group() * s.queries * s.keys * std::max<std::int64_t>(1, s.width));
  parallel_for(items, std::max<std::int64_t>(1, 65536 / work), [&](std::int64_t b, std::int64_t e) {
    // The thread's own, so that no unit begins in the other's cache; a long context gives it back.
    Ref<Storage> block;
    T* memory = nullptr;
    if (bytes <= kKept) {
      memory = scratch<T>(Scratch::attention, size);
    } else {
      block = Storage::allocate(bytes);
      memory = reinterpret_cast<T*>(block->data());
    }
    for (std::int64_t i = b; i < e; ++i) {
      if (!by_head) {
        unit(a, i / s.kv_heads, i % s.kv_heads, memory);
        continue;
      }
      for (std::int64_t sample = 0; sample < s.batch; ++sample) unit(a, sample, i, memory);
    }
  });
}

template <class T>
void forward(const AttentionShape& shape, const AttentionInputs<T>& in, T* y, T* stats,
             T* largest) {
  AttentionTask<T> a;
  a.shape = shape;
  a.in = in;
  a.y_out = y;
  a.stats = stats;
  a.largest = largest;
  run(a);
}

template <class T>
void backward(const AttentionShape& shape, const AttentionInputs<T>& in, const T* y, const T* stats,
              const T* dy, const AttentionGradients<T>& out) {
  AttentionTask<T> a;
  a.shape = shape;
  a.in = in;
  a.y = y;
  a.stats = const_cast<T*>(stats);  // only read here
  a.dy = dy;
  a.out = out;
  if (out.dbias && !out.accumulate_dbias) {
    std::fill(out.dbias, out.dbias + shape.heads * shape.queries * shape.keys, T{0});
  }
  run(a);
}

}  // namespace

void attention_forward(const AttentionShape& shape, const AttentionInputs<float>& in, float* y,
                       float* stats, float* largest) {
  forward(shape, in, y, stats, largest);
}
void attention_forward(const AttentionShape& shape, const AttentionInputs<double>& in, double* y,
                       double* stats, double* largest) {
  forward(shape, in, y, stats, largest);
}
void attention_backward(const AttentionShape& shape, const AttentionInputs<float>& in,
                        const float* y, const float* stats, const float* dy,
                        const AttentionGradients<float>& out) {
  backward(shape, in, y, stats, dy, out);
}
void attention_backward(const AttentionShape& shape, const AttentionInputs<double>& in,
                        const double* y, const double* stats, const double* dy,
                        const AttentionGradients<double>& out) {
  backward(shape, in, y, stats, dy, out);
}

void attention_dropout(const AttentionShape& shape, double* factor) {
  const std::int64_t rows = shape.batch * shape.heads * shape.queries;
  std::vector<double> row(static_cast<std::size_t>(shape.keys + 4));
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t j = 0; j < shape.keys; j += kKeys) {
      dropout_row(shape, r, j, std::min(shape.keys, j + kKeys), row.data() + j);
    }
    std::copy(row.begin(), row.begin() + shape.keys, factor + r * shape.keys);
  }
}

}  // namespace norma::kernels
#endif  // HWY_ONCE
