// Loops over arrays in vectors of the target at hand, with the rest of the array through a padded
// copy: every element goes through the same instructions, wherever it lies.
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
#include <cstring>

#include "core/kernels/tail-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace norma::kernels::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// The first `count` lanes from p, zeros above.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_some(D d, const T* p, std::size_t count) {
  HWY_ALIGN T padded[HWY_MAX_BYTES / sizeof(T)] = {};
  std::memcpy(padded, p, count * sizeof(T));
  return hn::Load(d, padded);
}

template <class D, class T = hn::TFromD<D>>
HWY_INLINE void store_some(hn::Vec<D> v, D d, T* p, std::size_t count) {
  HWY_ALIGN T padded[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(v, d, padded);
  std::memcpy(p, padded, count * sizeof(T));
}

// for (i < n) y[i] = f(x[i]); `past`: as StoreResult().
template <class T, class F>
HWY_INLINE void map(const T* x, T* y, std::size_t n, const F& f, bool past = false) {
  const hn::ScalableTag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) StoreResult(f(d, hn::LoadU(d, x + i)), d, y + i, past);
  FlushStores(past);
  if (i < n) store_some(f(d, load_some(d, x + i, n - i)), d, y + i, n - i);
}

// for (i < n) y[i] = f(a[i], b[i]);
template <class T, class F>
HWY_INLINE void map(const T* a, const T* b, T* y, std::size_t n, const F& f, bool past = false) {
  const hn::ScalableTag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    StoreResult(f(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, y + i, past);
  }
  FlushStores(past);
  if (i < n) {
    store_some(f(d, load_some(d, a + i, n - i), load_some(d, b + i, n - i)), d, y + i, n - i);
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
    store_some(
        f(d, load_some(d, a + i, n - i), load_some(d, b + i, n - i), load_some(d, c + i, n - i)), d,
        y + i, n - i);
  }
}

}  // namespace
}  // namespace norma::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // NORMA_VECTOR_LOOP_INL_H_
