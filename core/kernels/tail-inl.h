// Loads, stores and sums of the last lanes of a run, for the vector kernels. Include it behind
// hwy/highway.h in a file that is compiled once an instruction set.
#if defined(NORMA_KERNELS_TAIL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMA_KERNELS_TAIL_INL_H_
#undef NORMA_KERNELS_TAIL_INL_H_
#else
#define NORMA_KERNELS_TAIL_INL_H_
#endif

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace norma::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// for (i = 0; i < n; ++i) v[i] = p[i]; the other lanes are 0, and their memory is not read.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> LoadTail(D d, const T* HWY_RESTRICT p, std::int64_t n) {
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN T buffer[hn::MaxLanes(d)] = {};
  std::memcpy(buffer, p, static_cast<std::size_t>(n) * sizeof(T));
  return hn::Load(d, buffer);
#else
  return hn::MaskedLoad(hn::FirstN(d, static_cast<std::size_t>(n)), d, p);
#endif
}

// for (i = 0; i < n; ++i) p[i] = v[i];
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void StoreTail(hn::Vec<D> v, D d, T* HWY_RESTRICT p, std::int64_t n) {
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN T buffer[hn::MaxLanes(d)];
  hn::Store(v, d, buffer);
  std::memcpy(p, buffer, static_cast<std::size_t>(n) * sizeof(T));
#else
  hn::BlendedStore(v, hn::FirstN(d, static_cast<std::size_t>(n)), d, p);
#endif
}

// Stores whole vectors: where `past`, past the caches, to an aligned place. See Note [Past the
// cache]; FlushStores() ends a chunk of them.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void StoreResult(hn::Vec<D> v, D d, T* HWY_RESTRICT p, bool past) {
  past ? hn::Stream(v, d, p) : hn::StoreU(v, d, p);
}
HWY_INLINE void FlushStores(bool past) {
  if (past) hwy::FlushStream();
}

template <class D>
HWY_INLINE hn::TFromD<D> SumLanes(D d, hn::Vec<D> v) {
  return hn::GetLane(hn::SumOfLanes(d, v));
}

template <class D>
HWY_INLINE hn::TFromD<D> MaxLane(D d, hn::Vec<D> v) {
  return hn::GetLane(hn::MaxOfLanes(d, v));
}

// Asks for the lines of a run that is read soon, where no hardware foresees it.
template <class T>
HWY_INLINE void PrefetchRun(const T* p, std::int64_t n) {
  constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t i = 0; i < n; i += kLine) hwy::Prefetch(p + i);
}

// Asks for a line, and keeps the request at this place among the loads and stores: compilers gather
// requests, and a burst of them is answered later.
template <class T>
HWY_INLINE void PrefetchHere(const T* p) {
  hwy::Prefetch(p);
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

// Elements that are summed in the type itself; the sums of these blocks are added in f64.
constexpr std::int64_t kBlock = 4096;

// Does nothing beside a sum.
struct Nothing {
  HWY_INLINE void operator()(std::int64_t /*i*/) const {}
};

// double s = 0; for (i = 0; i < n; ++i) s += f(x[i]); beside(i) runs before the whole vector from
// element i on is read: what else there is to do with memory meanwhile.
template <class D, class T, class F, class Beside = Nothing>
HWY_INLINE double SumOf(D d, const T* HWY_RESTRICT x, std::int64_t n, const F& f,
                        const Beside& beside = {}) {
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  double total = 0;
  for (std::int64_t b = 0; b < n; b += kBlock) {
    const std::int64_t end = HWY_MIN(n, b + kBlock);
    auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    std::int64_t i = b;
    for (; i + 4 * lanes <= end; i += 4 * lanes) {
      beside(i);
      s0 = hn::Add(s0, f(hn::LoadU(d, x + i)));
      beside(i + lanes);
      s1 = hn::Add(s1, f(hn::LoadU(d, x + i + lanes)));
      beside(i + 2 * lanes);
      s2 = hn::Add(s2, f(hn::LoadU(d, x + i + 2 * lanes)));
      beside(i + 3 * lanes);
      s3 = hn::Add(s3, f(hn::LoadU(d, x + i + 3 * lanes)));
    }
    for (; i + lanes <= end; i += lanes) {
      beside(i);
      s0 = hn::Add(s0, f(hn::LoadU(d, x + i)));
    }
    if (i < end) {
      const auto last = hn::FirstN(d, static_cast<std::size_t>(end - i));
      s1 = hn::Add(s1, hn::IfThenElseZero(last, f(LoadTail(d, x + i, end - i))));
    }
    total += static_cast<double>(SumLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
  }
  return total;
}

struct Products {
  double sum = 0, product = 0;
};

// for (i = 0; i < n; ++i) sum += dy[i], product += dy[i] * (x[i] - mean) * rstd; beside(i) as for
// SumOf().
template <class D, class T, class Beside = Nothing>
HWY_INLINE Products ProductsOf(D d, const T* HWY_RESTRICT x, const T* HWY_RESTRICT dy,
                               std::int64_t n, hn::Vec<D> mean, hn::Vec<D> rstd,
                               const Beside& beside = {}) {
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  Products total;
  for (std::int64_t b = 0; b < n; b += kBlock) {
    const std::int64_t stop = HWY_MIN(n, b + kBlock);
    auto p0 = hn::Zero(d), p1 = p0, q0 = p0, q1 = p0;
    std::int64_t i = b;
    for (; i + 2 * lanes <= stop; i += 2 * lanes) {
      beside(i);
      const auto g0 = hn::LoadU(d, dy + i);
      p0 = hn::Add(p0, g0);
      q0 = hn::MulAdd(g0, hn::Mul(hn::Sub(hn::LoadU(d, x + i), mean), rstd), q0);
      beside(i + lanes);
      const auto g1 = hn::LoadU(d, dy + i + lanes);
      p1 = hn::Add(p1, g1);
      q1 = hn::MulAdd(g1, hn::Mul(hn::Sub(hn::LoadU(d, x + i + lanes), mean), rstd), q1);
    }
    for (; i < stop; i += lanes) {
      const std::int64_t k = HWY_MIN(lanes, stop - i);
      if (k == lanes) beside(i);
      const auto g = LoadTail(d, dy + i, k);
      p0 = hn::Add(p0, g);
      q0 = hn::MulAdd(g, hn::Mul(hn::Sub(LoadTail(d, x + i, k), mean), rstd), q0);
    }
    total.sum += static_cast<double>(SumLanes(d, hn::Add(p0, p1)));
    total.product += static_cast<double>(SumLanes(d, hn::Add(q0, q1)));
  }
  return total;
}

}  // namespace norma::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
