#include "core/kernels/rope.h"

#include <algorithm>
#include <cmath>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "core/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/rope.cpp"
#include "hwy/foreach_target.h"
// Behind foreach_target.h.
#include "core/kernels/tail-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace norma::kernels::HWY_NAMESPACE {
namespace {

// The heads of one position. cosine and sine have `half` elements.
template <class T>
HWY_INLINE void Rotate(const T* HWY_RESTRICT x, const T* HWY_RESTRICT cosine,
                       const T* HWY_RESTRICT sine, std::int64_t heads, std::int64_t half,
                       bool interleaved, bool inverse, T* HWY_RESTRICT y) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto sign = hn::Set(d, inverse ? T{-1} : T{1});
  for (std::int64_t h = 0; h < heads; ++h, x += 2 * half, y += 2 * half) {
    std::int64_t i = 0;
    if (interleaved) {
      // for i: y[2i] = x[2i] cos - x[2i+1] sin, y[2i+1] = x[2i+1] cos + x[2i] sin;
      for (; i + lanes <= half; i += lanes) {
        hn::Vec<decltype(d)> a, b;
        hn::LoadInterleaved2(d, x + 2 * i, a, b);
        const auto c = hn::LoadU(d, cosine + i), s = hn::Mul(sign, hn::LoadU(d, sine + i));
        hn::StoreInterleaved2(hn::NegMulAdd(b, s, hn::Mul(a, c)), hn::MulAdd(a, s, hn::Mul(b, c)),
                              d, y + 2 * i);
      }
      for (; i < half; ++i) {
        const T a = x[2 * i], b = x[2 * i + 1], c = cosine[i], s = inverse ? -sine[i] : sine[i];
        y[2 * i] = a * c - b * s;
        y[2 * i + 1] = b * c + a * s;
      }
      continue;
    }
    // for i: y[i] = x[i] cos - x[half+i] sin, y[half+i] = x[half+i] cos + x[i] sin;
    for (; i + lanes <= half; i += lanes) {
      const auto a = hn::LoadU(d, x + i), b = hn::LoadU(d, x + half + i);
      const auto c = hn::LoadU(d, cosine + i), s = hn::Mul(sign, hn::LoadU(d, sine + i));
      hn::StoreU(hn::NegMulAdd(b, s, hn::Mul(a, c)), d, y + i);
      hn::StoreU(hn::MulAdd(a, s, hn::Mul(b, c)), d, y + half + i);
    }
    if (i < half) {
      const std::int64_t n = half - i;
      const auto a = LoadTail(d, x + i, n), b = LoadTail(d, x + half + i, n);
      const auto c = LoadTail(d, cosine + i, n), s = hn::Mul(sign, LoadTail(d, sine + i, n));
      StoreTail(hn::NegMulAdd(b, s, hn::Mul(a, c)), d, y + i, n);
      StoreTail(hn::MulAdd(a, s, hn::Mul(b, c)), d, y + half + i, n);
    }
  }
}

// Positions begin .. end - 1 of (batch, length) as one axis; the tables start at the first position
// of the length.
template <class T>
HWY_INLINE void Positions(const RopeShape& s, const T* x, const T* cosine, const T* sine,
                          std::int64_t begin, std::int64_t end, T* y) {
  const std::int64_t half = s.width / 2, row = s.heads * s.width;
  for (std::int64_t p = begin; p < end; ++p) {
    const std::int64_t at = p % s.length * half;
    Rotate(x + p * row, cosine + at, sine + at, s.heads, half, s.pairs == RopePairs::interleaved,
           s.inverse, y + p * row);
  }
}

void PositionsF32(const RopeShape& s, const float* x, const float* c, const float* sine,
                  std::int64_t b, std::int64_t e, float* y) {
  Positions(s, x, c, sine, b, e, y);
}
void PositionsF64(const RopeShape& s, const double* x, const double* c, const double* sine,
                  std::int64_t b, std::int64_t e, double* y) {
  Positions(s, x, c, sine, b, e, y);
}

}  // namespace
}  // namespace norma::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace norma::kernels {
namespace {

HWY_EXPORT(PositionsF32);
HWY_EXPORT(PositionsF64);

void positions(const RopeShape& s, const float* x, const float* c, const float* sine,
               std::int64_t b, std::int64_t e, float* y) {
  HWY_DYNAMIC_DISPATCH(PositionsF32)(s, x, c, sine, b, e, y);
}
void positions(const RopeShape& s, const double* x, const double* c, const double* sine,
               std::int64_t b, std::int64_t e, double* y) {
  HWY_DYNAMIC_DISPATCH(PositionsF64)(s, x, c, sine, b, e, y);
}

// Cosine and sine of every pair at positions offset .. offset + length - 1.
template <class T>
struct Table {
  double base;
  std::int64_t width, offset, length;
  std::vector<T> cosine, sine;
};

// Note [Rope tables]. A table costs more than the rotation itself, and a model asks for the same
// one in every layer and step, so the last few are kept. A longer table with the same start serves
// a shorter length.
template <class T>
std::shared_ptr<const Table<T>> table_for(const RopeShape& s) {
  constexpr std::size_t kKept = 8;
  static std::mutex mutex;
  static std::list<std::shared_ptr<const Table<T>>> tables;
  const std::lock_guard lock(mutex);
  for (auto it = tables.begin(); it != tables.end(); ++it) {
    const Table<T>& t = **it;
    if (t.base != s.base || t.width != s.width || t.offset != s.offset || t.length < s.length) {
      continue;
    }
    tables.splice(tables.begin(), tables, it);
    return tables.front();
  }
  auto t = std::make_shared<Table<T>>(Table<T>{s.base, s.width, s.offset, s.length, {}, {}});
  const std::int64_t half = s.width / 2;
  t->cosine.resize(static_cast<std::size_t>(s.length * half));
  t->sine.resize(t->cosine.size());
  for (std::int64_t i = 0; i < half; ++i) {
    const double frequency =
        std::pow(s.base, -2.0 * static_cast<double>(i) / static_cast<double>(s.width));
    for (std::int64_t p = 0; p < s.length; ++p) {
      const double angle = static_cast<double>(s.offset + p) * frequency;
      const auto at = static_cast<std::size_t>(p * half + i);
      t->cosine[at] = static_cast<T>(std::cos(angle));
      t->sine[at] = static_cast<T>(std::sin(angle));
    }
  }
  tables.push_front(t);
  if (tables.size() > kKept) tables.pop_back();
  return t;
}

template <class T>
void run(const RopeShape& s, const T* x, T* y) {
  const std::int64_t row = s.heads * s.width;
  if (s.batch * s.length * row == 0) return;
  const auto table = table_for<T>(s);
  parallel_for(s.batch * s.length, row_grain(s.batch * s.length, row, 32768),
               [&](std::int64_t b, std::int64_t e) {
                 positions(s, x, table->cosine.data(), table->sine.data(), b, e, y);
               });
}

}  // namespace

void rope(const RopeShape& shape, const float* x, float* y) { run(shape, x, y); }
void rope(const RopeShape& shape, const double* x, double* y) { run(shape, x, y); }

}  // namespace norma::kernels
#endif  // HWY_ONCE
