// The inner loops of a matrix product: packing a panel of B, and a block of C held in registers.
//
// Included once a target.
#if defined(NORMA_GEMM_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMA_GEMM_TILE_INL_H_
#undef NORMA_GEMM_TILE_INL_H_
#else
#define NORMA_GEMM_TILE_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "core/kernels/gemm.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace norma::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A block of C is kBlockRows rows by two vectors: 16 accumulators of 32 registers, or 12 of 16. (Of
// these, 8 would do for the latency of a fused multiply-add, but leave nothing for delays: 4 rows
// take 10 % longer.)
#if HWY_TARGET <= HWY_AVX3
inline constexpr int kBlockRows = 8;
#else
inline constexpr int kBlockRows = 6;
#endif
inline constexpr int kPanelVectors = 2;
// Rows of a packed panel: 32 columns of f32 are 32 KiB, which stay in the first-level cache.
inline constexpr std::int64_t kPanelDepth = 256;
template <class T>
inline constexpr std::int64_t kPanelCols = kPanelVectors* static_cast<std::int64_t>(HWY_LANES(T));

#if HWY_TARGET != HWY_SCALAR
// The lanes' blocks of four from rows 4 * ld apart: v[4 * i + k] = from[i * 4 * ld + k], k < 4.
template <class D>
HWY_INLINE hn::Vec<D> load_blocks(D d, const hn::TFromD<D>* from, std::int64_t ld) {
  if constexpr (hn::MaxLanes(D()) <= 4) {
    return hn::LoadU(d, from);
  } else {
    const hn::Half<D> half;
    constexpr std::int64_t kRows = static_cast<std::int64_t>(hn::MaxLanes(D()) / 2);
    return hn::Combine(d, load_blocks(half, from + kRows * ld, ld), load_blocks(half, from, ld));
  }
}

// for r < Lanes(d), k < depth: to[k * stride + r] = from[r * ld + k], f32
template <class D>
HWY_INLINE void transpose_rows(D d, const float* from, std::int64_t ld, std::int64_t depth,
                               float* to, std::int64_t stride) {
  const hn::RepartitionToWide<D> wide;
  // The last step goes over some elements once more.
  for (std::int64_t k = 0; k < depth; k += 4) {
    k = std::min(k, depth - 4);
    const auto r0 = load_blocks(d, from + k, ld), r1 = load_blocks(d, from + ld + k, ld);
    const auto r2 = load_blocks(d, from + 2 * ld + k, ld);
    const auto r3 = load_blocks(d, from + 3 * ld + k, ld);
    const auto a = hn::BitCast(wide, hn::InterleaveLower(d, r0, r1));
    const auto b = hn::BitCast(wide, hn::InterleaveLower(d, r2, r3));
    const auto e = hn::BitCast(wide, hn::InterleaveUpper(d, r0, r1));
    const auto f = hn::BitCast(wide, hn::InterleaveUpper(d, r2, r3));
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, a, b)), d, to + k * stride);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, a, b)), d, to + (k + 1) * stride);
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, e, f)), d, to + (k + 2) * stride);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, e, f)), d, to + (k + 3) * stride);
  }
}
#endif

// for r < 4, k < depth: to[k * stride + r] = from[r * ld + k]
template <class T>
HWY_INLINE void transpose_four(const T* from, std::int64_t ld, std::int64_t depth, T* to,
                               std::int64_t stride) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (sizeof(T) == 4) {
    if (depth >= 4) return transpose_rows(hn::FixedTag<T, 4>(), from, ld, depth, to, stride);
  }
#endif
  for (std::int64_t k = 0; k < depth; ++k) {
    for (int r = 0; r < 4; ++r) to[k * stride + r] = from[r * ld + k];
  }
}

// panel (depth, kPanelCols) = `cols` columns of op(B), zeros to the right of them.
template <class T>
HWY_INLINE void pack_panel(const T* b, std::int64_t ldb, bool transposed, std::int64_t depth,
                           std::int64_t cols, T* panel) {
  constexpr std::int64_t kCols = kPanelCols<T>;
  if (cols < kCols) std::fill_n(panel, depth * kCols, T(0));
  if (transposed) {
    std::int64_t j = 0;
#if HWY_TARGET != HWY_SCALAR
    if constexpr (sizeof(T) == 4) {
      constexpr std::int64_t kLanes = HWY_LANES(T);
      for (; depth >= 4 && j + kLanes <= cols; j += kLanes) {
        transpose_rows(hn::ScalableTag<T>(), b + j * ldb, ldb, depth, panel + j, kCols);
      }
    }
#endif
    for (; j + 4 <= cols; j += 4) transpose_four(b + j * ldb, ldb, depth, panel + j, kCols);
    for (; j < cols; ++j) {
      for (std::int64_t k = 0; k < depth; ++k) panel[k * kCols + j] = b[j * ldb + k];
    }
    return;
  }
  if (cols < kCols) {
    for (std::int64_t k = 0; k < depth; ++k) {
      for (std::int64_t j = 0; j < cols; ++j) panel[k * kCols + j] = b[k * ldb + j];
    }
    return;
  }
  const hn::ScalableTag<T> d;
  for (std::int64_t k = 0; k < depth; ++k) {
    for (int v = 0; v < kPanelVectors; ++v) {
      const std::int64_t j = v * static_cast<std::int64_t>(HWY_LANES(T));
      hn::Store(hn::LoadU(d, b + k * ldb + j), d, panel + k * kCols + j);
    }
  }
}

// One block: for i < kRows, j: c[i, j] = beta c[i, j] + alpha sum over k of a[i, k] b[k, j] +
// bias[j], where bias may be null. a[i, k] lies at a[i * lda + k], or at a[k * lda + i] if
// kTransposed; b has rows of `ldb`. With kAsks the rows at `next_a` come from memory meanwhile.
template <int kRows, int kVectors, bool kTransposed, bool kAsks = false, class T>
HWY_INLINE void block(const T* HWY_RESTRICT a, std::int64_t lda, const T* HWY_RESTRICT b,
                      std::int64_t ldb, std::int64_t depth, T alpha, T beta,
                      const T* HWY_RESTRICT bias, T* HWY_RESTRICT c, std::int64_t ldc,
                      std::int64_t cols, [[maybe_unused]] const T* next_a = nullptr) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr std::int64_t kLanes = HWY_LANES(T);
  V acc[kRows][kVectors];
  for (int i = 0; i < kRows; ++i) {
    for (int v = 0; v < kVectors; ++v) acc[i][v] = hn::Zero(d);
  }
  const auto add = [&](std::int64_t first, std::int64_t stop) HWY_ATTR {
    for (std::int64_t k = first; k < stop; ++k) {
      V row[kVectors];
      for (int v = 0; v < kVectors; ++v) row[v] = hn::LoadU(d, b + k * ldb + v * kLanes);
      for (int i = 0; i < kRows; ++i) {
        const V x = hn::Set(d, kTransposed ? a[k * lda + i] : a[i * lda + k]);
        for (int v = 0; v < kVectors; ++v) acc[i][v] = hn::MulAdd(x, row[v], acc[i][v]);
      }
    }
  };
  if constexpr (kAsks) {
    constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(T));
    for (std::int64_t k = 0; k < depth; k += kLine) {
      for (int i = 0; i < kRows; ++i) __builtin_prefetch(next_a + i * lda + k);
      add(k, HWY_MIN(depth, k + kLine));
    }
  } else {
    add(0, depth);
  }
  const V scale = hn::Set(d, alpha), keep = hn::Set(d, beta);
  if (cols == kVectors * kLanes) {
    for (int i = 0; i < kRows; ++i) {
      for (int v = 0; v < kVectors; ++v) {
        T* to = c + i * ldc + v * kLanes;
        V sum = hn::Mul(scale, acc[i][v]);
        if (beta != T(0)) sum = hn::MulAdd(keep, hn::LoadU(d, to), sum);
        if (bias) sum = hn::Add(sum, hn::LoadU(d, bias + v * kLanes));
        hn::StoreU(sum, d, to);
      }
    }
    return;
  }
  HWY_ALIGN T line[kVectors * kLanes];
  for (int i = 0; i < kRows; ++i) {
    for (int v = 0; v < kVectors; ++v) {
      hn::Store(hn::Mul(scale, acc[i][v]), d, line + v * kLanes);
    }
    T* to = c + i * ldc;
    for (std::int64_t j = 0; j < cols; ++j) {
      to[j] = beta == T(0) ? line[j] : beta * to[j] + line[j];
      if (bias) to[j] += bias[j];
    }
  }
}

// Asks for `rows` rows of `length` elements, into the first-level cache (kLevel 3) or the second
// (2).
template <int kLevel, class T>
HWY_INLINE void ask_for_rows(const T* from, std::int64_t ld, std::int64_t rows,
                             std::int64_t length) {
  constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t k = 0; k < length; k += kLine)
      __builtin_prefetch(from + r * ld + k, 0, kLevel);
  }
}

// Asks for one of `parts` parts of `next`, with every block of rows another: the panel that comes
// next, whose rows lie too far apart for the hardware to foresee them.
template <class T>
HWY_INLINE void fetch_part(const MatrixRows<T>& next, std::int64_t part, std::int64_t parts) {
  const std::int64_t first = part * next.rows / parts, stop = (part + 1) * next.rows / parts;
  ask_for_rows<2>(next.data + first * next.ld, next.ld, stop - first, next.length);
}

// Note [Order of blocks]. A core that has seen an instruction take equal steps through memory asks
// for what comes up to 16 steps later: here, 16 blocks of rows. At the end of a tile those are rows
// of another thread, which may be at work on them: each line moves to this core's cache, and has to
// come back. (Where the cores share no cache that was 10 % of a step of a deep network.) So the
// last 16 blocks come from both ends in turn, which no core foresees. The first of them has been
// asked for by then; each asks for the next one's rows of C and of A, those a line of each row at a
// time: all at once they would fill what keeps track of them. (A transposed A is read by columns.)
// Tiles of more than two panels do without: they take longer, and would ask for A with each.
constexpr std::int64_t kBlocksAhead = 16;

// Which of `blocks` blocks of rows is the k-th to be computed.
HWY_INLINE std::int64_t nth_block(std::int64_t k, std::int64_t blocks) {
  const std::int64_t first = HWY_MAX(std::int64_t{0}, blocks - kBlocksAhead);
  if (k < first) return k;
  return (k - first) % 2 == 0 ? blocks - 1 - (k - first) / 2 : first + (k - first) / 2;
}

// All rows of a tile against one panel: block() over the rows, in their order or in that of the
// note above.
template <int kVectors, bool kTransposed, bool kInOrder, class T>
HWY_INLINE void rows_by_panel(const MatrixRows<T>& next, std::int64_t rows, const T* a,
                              std::int64_t lda, const T* b, std::int64_t ldb, std::int64_t depth,
                              T alpha, T beta, const T* bias, T* c, std::int64_t ldc,
                              std::int64_t cols) {
  const std::int64_t step = kTransposed ? 1 : lda;
  const std::int64_t blocks = rows / kBlockRows;
  for (std::int64_t k = 0; k < blocks; ++k) {
    const std::int64_t r = (kInOrder ? k : nth_block(k, blocks)) * kBlockRows;
    if (next.rows > 0) fetch_part(next, k, blocks);
    const T* from = a + r * step;
    T* to = c + r * ldc;
    if (!kInOrder && k + 1 < blocks && k + kBlocksAhead >= blocks) {
      const std::int64_t following = nth_block(k + 1, blocks) * kBlockRows;
      ask_for_rows<3>(c + following * ldc, ldc, kBlockRows, cols);
      block<kBlockRows, kVectors, kTransposed, !kTransposed>(
          from, lda, b, ldb, depth, alpha, beta, bias, to, ldc, cols, a + following * step);
    } else {
      block<kBlockRows, kVectors, kTransposed>(from, lda, b, ldb, depth, alpha, beta, bias, to, ldc,
                                               cols);
    }
  }
  std::int64_t i = blocks * kBlockRows;
  if (i + 4 <= rows) {
    block<4, kVectors, kTransposed>(a + i * step, lda, b, ldb, depth, alpha, beta, bias,
                                    c + i * ldc, ldc, cols);
    i += 4;
  }
  if (i + 2 <= rows) {
    block<2, kVectors, kTransposed>(a + i * step, lda, b, ldb, depth, alpha, beta, bias,
                                    c + i * ldc, ldc, cols);
    i += 2;
  }
  if (i < rows) {
    block<1, kVectors, kTransposed>(a + i * step, lda, b, ldb, depth, alpha, beta, bias,
                                    c + i * ldc, ldc, cols);
  }
}

// Elements between the rows of a copy of some of A's: an odd number of lines, so that a column of
// them spreads over the sets of a cache.
template <class T>
constexpr std::int64_t copied_pitch(std::int64_t rows) {
  constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(T));
  return ((rows + kLine - 1) / kLine | 1) * kLine;
}

// c = beta c + alpha op(a) op(b) + bias on the calling thread; bias (n) may be null. `panel` holds
// kPanelDepth * kPanelCols elements, 64-byte aligned. `copy`, which may be null, holds kPanelDepth
// rows of copied_pitch(m): a transposed A goes there, since its columns lie apart. `alone`: no
// other thread works on what lies behind these rows; see Note [Order of blocks]. `after` is what
// the thread reads next.
template <class T>
HWY_INLINE void tile_product(const Product& p, T alpha, const T* a, const T* b, T beta,
                             const std::type_identity_t<T>* bias, T* c, bool alone, T* panel,
                             T* copy = nullptr, const MatrixRows<T>& after = {}) {
  constexpr std::int64_t kCols = kPanelCols<T>;
  const std::int64_t parts = std::max<std::int64_t>(1, (p.k + kPanelDepth - 1) / kPanelDepth);
  const std::int64_t depth = (p.k + parts - 1) / parts;
  // A few rows do not pay for packing; rows of B that lie far apart evict each other.
  const bool direct = !p.transpose_b && p.m <= 128 && p.ldb < 1024;
  const bool asks = p.m >= 64;  // fewer rows do not pay for it
  const auto panel_at = [&](std::int64_t k0, std::int64_t j) {
    const std::int64_t kc = std::min(depth, p.k - k0), cols = std::min(kCols, p.n - j);
    return p.transpose_b ? MatrixRows<T>{b + j * p.ldb + k0, p.ldb, cols, kc}
                         : MatrixRows<T>{b + k0 * p.ldb + j, p.ldb, kc, cols};
  };
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::int64_t k0 = part * depth;
    const std::int64_t kc = std::min(depth, p.k - k0);
    const T keep = part == 0 ? beta : T(1);
    const bool last = part + 1 == parts;
    const T* from = a + (p.transpose_a ? k0 * p.lda : k0);
    std::int64_t lda = p.lda;
    if (copy) {
      lda = copied_pitch<T>(p.m);
      for (std::int64_t k = 0; k < kc; ++k) std::copy_n(from + k * p.lda, p.m, copy + k * lda);
      from = copy;
    }
    for (std::int64_t j = 0; j < p.n; j += kCols) {
      const std::int64_t cols = std::min(kCols, p.n - j);
      const T* rows = b + (p.transpose_b ? j * p.ldb + k0 : k0 * p.ldb + j);
      std::int64_t ldb = p.ldb;
      if (!direct || cols % (kCols / 2) != 0) {
        pack_panel(rows, ldb, p.transpose_b, kc, cols, panel);
        rows = panel;
        ldb = kCols;
      }
      MatrixRows<T> next;
      if (asks && j + kCols < p.n) {
        next = panel_at(k0, j + kCols);
      } else if (asks && !last) {
        next = panel_at(k0 + depth, 0);
      } else if (asks) {
        next = after;
      }
      const auto run = [&]<int kVectors, bool kTransposed>() {
        const T* const added = bias && last ? bias + j : nullptr;
        if (p.n > 2 * kCols || alone) {
          rows_by_panel<kVectors, kTransposed, true>(next, p.m, from, lda, rows, ldb, kc, alpha,
                                                     keep, added, c + j, p.ldc, cols);
        } else {
          rows_by_panel<kVectors, kTransposed, false>(next, p.m, from, lda, rows, ldb, kc, alpha,
                                                      keep, added, c + j, p.ldc, cols);
        }
      };
      if (cols > kCols / 2) {
        p.transpose_a ? run.template operator()<2, true>() : run.template operator()<2, false>();
      } else {
        p.transpose_a ? run.template operator()<1, true>() : run.template operator()<1, false>();
      }
    }
  }
}

}  // namespace norma::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // NORMA_GEMM_TILE_INL_H_
