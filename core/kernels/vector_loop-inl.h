// Loops over arrays in vectors of the target at hand, the rest of the array in some lanes of one:
// every element goes through the same instructions, wherever it lies.
//
// Included once a target by the kernels; F is a struct with a member template
// `V operator()(D d, V... lanes) const`.
#if defined(NORMA_VECTOR_LOOP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMA_VECTOR_LOOP_INL_H_
#undef NORMA_VECTOR_LOOP_INL_H_
#else
#define NORMA_VECTOR_LOOP_INL_H_
#endif

#include <cstddef>

#include "core/kernels/tail-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace norma::kernels::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// for (i < n) y[i] = f(x[i]); `past`: as StoreResult(), and the caller ends with FlushStores().
// Operands are asked for `ahead` elements before their turn: a core that computes much for each
// does not foresee far enough itself; 0: not at all.
template <class T, class F>
HWY_INLINE void map(const T* x, T* y, std::size_t n, const F& f, bool past = false,
                    std::size_t ahead = 0) {
  const hn::ScalableTag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    if (ahead > 0) hwy::Prefetch(x + i + ahead);
    StoreResult(f(d, hn::LoadU(d, x + i)), d, y + i, past);
  }
  if (i < n) StoreTail(f(d, LoadTail(d, x + i, n - i)), d, y + i, n - i);
}

// for (i < n) y[i] = f(a[i], b[i]); `past` and `ahead`: likewise.
template <class T, class F>
HWY_INLINE void map(const T* a, const T* b, T* y, std::size_t n, const F& f, bool past = false,
                    std::size_t ahead = 0) {
  const hn::ScalableTag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    if (ahead > 0) {
      hwy::Prefetch(a + i + ahead);
      hwy::Prefetch(b + i + ahead);
    }
    StoreResult(f(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, y + i, past);
  }
  if (i < n) {
    StoreTail(f(d, LoadTail(d, a + i, n - i), LoadTail(d, b + i, n - i)), d, y + i, n - i);
  }
}

// for (i < n) y[i] = f(a[i], b[i], c[i]);
template <class T, class F>
HWY_INLINE void map(const T* a, const T* b, const T* c, T* y, std::size_t n, const F& f) {
  const hn::ScalableTag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(f(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i), hn::LoadU(d, c + i)), d, y + i);
  }
  if (i < n) {
    StoreTail(f(d, LoadTail(d, a + i, n - i), LoadTail(d, b + i, n - i), LoadTail(d, c + i, n - i)),
              d, y + i, n - i);
  }
}

}  // namespace
}  // namespace norma::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // NORMA_VECTOR_LOOP_INL_H_
