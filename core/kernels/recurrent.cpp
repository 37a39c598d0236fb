#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/recurrent.cpp"
#include "hwy/foreach_target.h"  // must come before the vector headers
//
#include <algorithm>

#include "core/kernels/math-inl.h"
#include "core/kernels/recurrent.h"
#include "core/kernels/tail-inl.h"

HWY_BEFORE_NAMESPACE();
namespace norma::kernels::HWY_NAMESPACE {
namespace {

// A vector of a row: the elements at .. at + lanes - 1 of a gate, of which `left` exist.
template <class T>
struct Piece {
  hn::ScalableTag<T> d;
  std::int64_t at, left;
  using V = hn::Vec<hn::ScalableTag<T>>;

  HWY_INLINE bool whole() const { return left >= static_cast<std::int64_t>(hn::Lanes(d)); }
  HWY_INLINE V load(const T* row) const {
    return whole() ? hn::LoadU(d, row + at) : LoadTail(d, row + at, left);
  }
  HWY_INLINE void store(V v, T* row) const {
    whole() ? hn::StoreU(v, d, row + at) : StoreTail(v, d, row + at, left);
  }
  // Into the row at `offset` of a gradient that may not be wanted.
  HWY_INLINE void put(V v, const Output<T>& out, std::int64_t offset) const {
    if (!out.data) return;
    if (out.accumulate) v = hn::Add(v, load(out.data + offset));
    store(v, out.data + offset);
  }
  HWY_INLINE V one() const { return hn::Set(d, T{1}); }
  // The slopes of s = sigmoid(x) and t = tanh(x).
  HWY_INLINE V sigmoid_slope(V s) const { return hn::Mul(s, hn::Sub(one(), s)); }
  HWY_INLINE V tanh_slope(V t) const { return hn::NegMulAdd(t, t, one()); }
};

// In each: n elements a gate, the row's place in `gates` (g) and in `state` (s).

template <class T>
HWY_INLINE void Lstm(const CellTask<T>& a, const Piece<T>& p, std::int64_t g, std::int64_t s) {
  const std::int64_t n = a.hidden;
  const auto i = sigmoid(p.d, p.load(a.gates + g)), f = sigmoid(p.d, p.load(a.gates + g + n));
  const auto candidate = tanh(p.d, p.load(a.gates + g + 2 * n)), c = p.load(a.state + s);
  if (!a.dy) return p.store(hn::MulAdd(f, c, hn::Mul(i, candidate)), a.y + s);
  const auto dy = p.load(a.dy + s);
  p.put(hn::Mul(hn::Mul(dy, candidate), p.sigmoid_slope(i)), a.dgates, g);
  p.put(hn::Mul(hn::Mul(dy, c), p.sigmoid_slope(f)), a.dgates, g + n);
  p.put(hn::Mul(hn::Mul(dy, i), p.tanh_slope(candidate)), a.dgates, g + 2 * n);
  p.put(hn::Zero(p.d), a.dgates, g + 3 * n);
  p.put(hn::Mul(dy, f), a.dstate, s);
}

template <class T>
HWY_INLINE void LstmOutput(const CellTask<T>& a, const Piece<T>& p, std::int64_t g,
                           std::int64_t s) {
  const std::int64_t n = a.hidden;
  const auto o = sigmoid(p.d, p.load(a.gates + g + 3 * n)), t = tanh(p.d, p.load(a.state + s));
  if (!a.dy) return p.store(hn::Mul(o, t), a.y + s);
  const auto dy = p.load(a.dy + s);
  for (int gate = 0; gate < 3; ++gate) p.put(hn::Zero(p.d), a.dgates, g + gate * n);
  p.put(hn::Mul(hn::Mul(dy, t), p.sigmoid_slope(o)), a.dgates, g + 3 * n);
  p.put(hn::Mul(hn::Mul(dy, o), p.tanh_slope(t)), a.dstate, s);
}

template <class T>
HWY_INLINE void Gru(const CellTask<T>& a, const Piece<T>& p, std::int64_t g, std::int64_t s) {
  const std::int64_t n = a.hidden;
  const T* x = a.gates + g;
  const T* h = a.from_h + g;
  const auto r = sigmoid(p.d, hn::Add(p.load(x), p.load(h)));
  const auto z = sigmoid(p.d, hn::Add(p.load(x + n), p.load(h + n)));
  const auto h_n = p.load(h + 2 * n), state = p.load(a.state + s), keep = hn::Sub(p.one(), z);
  const auto candidate = tanh(p.d, hn::MulAdd(r, h_n, p.load(x + 2 * n)));
  if (!a.dy) return p.store(hn::MulAdd(keep, candidate, hn::Mul(z, state)), a.y + s);
  const auto dy = p.load(a.dy + s);
  const auto dz = hn::Mul(hn::Mul(dy, hn::Sub(state, candidate)), p.sigmoid_slope(z));
  const auto dn = hn::Mul(hn::Mul(dy, keep), p.tanh_slope(candidate));
  const auto dr = hn::Mul(hn::Mul(dn, h_n), p.sigmoid_slope(r));
  for (const Output<T>& out : {a.dgates, a.dfrom_h}) {
    p.put(dr, out, g);
    p.put(dz, out, g + n);
  }
  p.put(dn, a.dgates, g + 2 * n);
  p.put(hn::Mul(dn, r), a.dfrom_h, g + 2 * n);
  p.put(hn::Mul(dy, z), a.dstate, s);
}

template <class T>
HWY_INLINE void Rows(Cell cell, const CellTask<T>& a, std::int64_t begin, std::int64_t end) {
  const hn::ScalableTag<T> d;
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t s = row * a.hidden, g = s * gates_of(cell);
    for (std::int64_t j = 0; j < a.hidden; j += static_cast<std::int64_t>(hn::Lanes(d))) {
      const Piece<T> p{d, j, a.hidden - j};
      switch (cell) {
        case Cell::lstm:
          Lstm(a, p, g, s);
          break;
        case Cell::lstm_output:
          LstmOutput(a, p, g, s);
          break;
        case Cell::gru:
          Gru(a, p, g, s);
          break;
      }
    }
  }
}

void RowsF32(Cell cell, const CellTask<float>& a, std::int64_t begin, std::int64_t end) {
  Rows(cell, a, begin, end);
}
void RowsF64(Cell cell, const CellTask<double>& a, std::int64_t begin, std::int64_t end) {
  Rows(cell, a, begin, end);
}

}  // namespace
}  // namespace norma::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "core/parallel.h"

namespace norma::kernels {
namespace {

HWY_EXPORT(RowsF32);
HWY_EXPORT(RowsF64);

template <class T, class F>
void for_rows(const CellTask<T>& a, F&& f) {
  // 4096 elements, with three to five exponentials each, are worth a thread.
  parallel_for(a.rows, std::max<std::int64_t>(1, 4096 / std::max<std::int64_t>(1, a.hidden)), f);
}

}  // namespace

void run_cell(Cell cell, const CellTask<float>& task) {
  for_rows(task, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(RowsF32)(cell, task, begin, end);
  });
}
void run_cell(Cell cell, const CellTask<double>& task) {
  for_rows(task, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(RowsF64)(cell, task, begin, end);
  });
}

}  // namespace norma::kernels
#endif  // HWY_ONCE
