#include "core/kernels/norm_rows.h"

#include <algorithm>
#include <vector>

#include "core/kernels/moments.h"
#include "core/parallel.h"
#include "core/storage.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/norm_rows.cpp"
#include "hwy/foreach_target.h"
// Behind foreach_target.h.
#include "core/kernels/tail-inl.h"
#include "hwy/highway.h"

#ifndef NORMA_KERNELS_NORM_ROWS_TYPES_
#define NORMA_KERNELS_NORM_ROWS_TYPES_
namespace norma::kernels {

template <class T>
struct RowsForward {
  RowsShape shape;
  const T* x;
  const T* gain;  // never null
  const T* bias;
  T* y;
  T* mean;
  T* rstd;
  T* var;
  bool known;  // mean and rstd are read, not written
};

template <class T>
struct RowsBackward {
  RowsShape shape;
  const T* dy;
  const T* x;
  const T* gain;  // never null
  const T* mean;
  const T* rstd;
  T* dx;
  bool accumulate_dx;
};

}  // namespace norma::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace norma::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D, class T>
HWY_INLINE Moments RowMoments(D d, const T* HWY_RESTRICT x, const RowsShape& s) {
  const std::int64_t n = s.counted;
  const double count = static_cast<double>(n);
  Moments m;
  if (s.centre) {
    const auto first = hn::Set(d, x[0]);
    const double shifted = SumOf(d, x, n, [&](auto v) HWY_ATTR { return hn::Sub(v, first); });
    m.mean = static_cast<double>(x[0]) + shifted / count;
    const T rounded = static_cast<T>(m.mean);
    const auto mean = hn::Set(d, rounded);
    const double squares = SumOf(d, x, n, [&](auto v) HWY_ATTR {
      const auto c = hn::Sub(v, mean);
      return hn::Mul(c, c);
    });
    const double error = static_cast<double>(rounded) - m.mean;
    m.var = HWY_MAX(0.0, squares / count - error * error);
    if (!std::isfinite(squares)) m.var = squares;
  } else {
    m.var = SumOf(d, x, n, [&](auto v) HWY_ATTR { return hn::Mul(v, v); }) / count;
  }
  if (!in_range<T>(m.var, s.eps)) {
    return scaled_moments(n, s.centre, s.eps, [&](std::int64_t i) { return x[i]; });
  }
  m.rstd = reciprocal_deviation(m.var, s.eps);
  return m;
}

// Elements of the next run that are asked for while one is computed.
constexpr std::int64_t kPrefetched = 2048;

// Rows begin..end-1.
template <class T>
HWY_NOINLINE void Forward(const RowsForward<T>& a, std::int64_t begin, std::int64_t end) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const RowsShape& s = a.shape;
  const std::int64_t per_row = s.cols / s.space;
  for (std::int64_t r = begin; r < end; ++r) {
    const T* HWY_RESTRICT x = a.x + r * s.cols;
    T* HWY_RESTRICT y = a.y + r * s.cols;
    if (r + 1 < end) PrefetchRun(x + s.cols, HWY_MIN(s.cols, kPrefetched));
    T row_mean = a.known && a.mean ? a.mean[r] : T{0};
    if (!a.known) {
      const Moments m = RowMoments(d, x, s);
      row_mean = static_cast<T>(m.mean);
      if (a.mean) a.mean[r] = row_mean;
      if (a.var) a.var[r] = static_cast<T>(m.var);
      a.rstd[r] = static_cast<T>(m.rstd);
    }
    const auto mean = hn::Set(d, row_mean), rstd = hn::Set(d, a.rstd[r]);
    const T* HWY_RESTRICT gain = a.gain + (r % s.groups) * per_row;
    const T* HWY_RESTRICT bias = a.bias ? a.bias + (r % s.groups) * per_row : nullptr;
    if (s.space == 1) {
      // for (i = 0; i < cols; ++i) y[i] = (x[i] - mean) * rstd * gain[i] + bias[i];
      std::int64_t i = 0;
      if (bias) {
        for (; i + lanes <= s.cols; i += lanes) {
          const auto z = hn::Mul(hn::Sub(hn::LoadU(d, x + i), mean), rstd);
          hn::StoreU(hn::MulAdd(z, hn::LoadU(d, gain + i), hn::LoadU(d, bias + i)), d, y + i);
        }
      } else {
        for (; i + lanes <= s.cols; i += lanes) {
          const auto z = hn::Mul(hn::Sub(hn::LoadU(d, x + i), mean), rstd);
          hn::StoreU(hn::Mul(z, hn::LoadU(d, gain + i)), d, y + i);
        }
      }
      if (i < s.cols) {
        const std::int64_t n = s.cols - i;
        const auto z = hn::Mul(hn::Sub(LoadTail(d, x + i, n), mean), rstd);
        const auto b = bias ? LoadTail(d, bias + i, n) : hn::Zero(d);
        StoreTail(hn::MulAdd(z, LoadTail(d, gain + i, n), b), d, y + i, n);
      }
      continue;
    }
    for (std::int64_t c = 0; c < per_row; ++c, x += s.space, y += s.space) {
      // for (i = 0; i < space; ++i) y[i] = (x[i] - mean) * rstd * gain[c] + bias[c];
      const auto g = hn::Set(d, gain[c]);
      const auto b = hn::Set(d, bias ? bias[c] : T{0});
      std::int64_t i = 0;
      for (; i + lanes <= s.space; i += lanes) {
        const auto z = hn::Mul(hn::Sub(hn::LoadU(d, x + i), mean), rstd);
        hn::StoreU(hn::MulAdd(z, g, b), d, y + i);
      }
      if (i < s.space) {
        const auto z = hn::Mul(hn::Sub(LoadTail(d, x + i, s.space - i), mean), rstd);
        StoreTail(hn::MulAdd(z, g, b), d, y + i, s.space - i);
      }
    }
  }
}

// for (i = 0; i < n; ++i) dx[i] = rstd * (dy[i] * gain[i] - c1 - (x[i] - mean) * rstd * c2);
// or dx[i] += ... ; gain_at(i, n) gives the gains of the lanes at i.
template <class D, class T, class G>
HWY_INLINE void WriteDx(D d, const T* HWY_RESTRICT dy, const T* HWY_RESTRICT x, std::int64_t n,
                        const G& gain_at, T mean, T rstd, T c1, T c2, bool accumulate,
                        T* HWY_RESTRICT dx) {
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto vm = hn::Set(d, mean), vr = hn::Set(d, rstd), v1 = hn::Set(d, c1), v2 = hn::Set(d, c2);
  const auto value = [&](auto g, auto xv) HWY_ATTR {
    const auto z = hn::Mul(hn::Sub(xv, vm), vr);
    return hn::Mul(vr, hn::Sub(g, hn::MulAdd(z, v2, v1)));
  };
  std::int64_t i = 0;
  if (accumulate) {
    for (; i + lanes <= n; i += lanes) {
      const auto g = hn::Mul(hn::LoadU(d, dy + i), gain_at(i, lanes));
      hn::StoreU(hn::Add(hn::LoadU(d, dx + i), value(g, hn::LoadU(d, x + i))), d, dx + i);
    }
  } else {
    for (; i + lanes <= n; i += lanes) {
      const auto g = hn::Mul(hn::LoadU(d, dy + i), gain_at(i, lanes));
      hn::StoreU(value(g, hn::LoadU(d, x + i)), d, dx + i);
    }
  }
  if (i < n) {
    const std::int64_t k = n - i;
    const auto g = hn::Mul(LoadTail(d, dy + i, k), gain_at(i, k));
    const auto v = value(g, LoadTail(d, x + i, k));
    StoreTail(accumulate ? hn::Add(LoadTail(d, dx + i, k), v) : v, d, dx + i, k);
  }
}

// Rows begin..end-1 where every element has its own gain. dweight and dbias are this chunk's own
// sums, `channels` each, zero before; both null if no one wants them.
template <class T>
HWY_NOINLINE void BackwardElements(const RowsBackward<T>& a, std::int64_t begin, std::int64_t end,
                                   T* dweight, T* dbias) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const RowsShape& s = a.shape;
  for (std::int64_t r = begin; r < end; ++r) {
    const T* HWY_RESTRICT x = a.x + r * s.cols;
    const T* HWY_RESTRICT dy = a.dy + r * s.cols;
    if (r + 1 < end) {
      PrefetchRun(x + s.cols, HWY_MIN(s.cols, kPrefetched));
      PrefetchRun(dy + s.cols, HWY_MIN(s.cols, kPrefetched));
    }
    const std::int64_t offset = (r % s.groups) * s.cols;
    const T* HWY_RESTRICT gain = a.gain + offset;
    T* HWY_RESTRICT dw = dweight + (dweight ? offset : 0);
    T* HWY_RESTRICT db = dbias + (dbias ? offset : 0);
    const T mean = a.mean ? a.mean[r] : T{0};
    const auto vm = hn::Set(d, mean), vr = hn::Set(d, a.rstd[r]);
    double s1 = 0, s2 = 0;
    // for i: z = (x[i] - mean) * rstd; g = dy[i] * gain[i]; s1 += g; s2 += g * z;
    //        dw[i] += dy[i] * z; db[i] += dy[i];
    for (std::int64_t b = 0; b < s.cols; b += kBlock) {
      const std::int64_t stop = HWY_MIN(s.cols, b + kBlock);
      auto p0 = hn::Zero(d), p1 = p0, q0 = p0, q1 = p0;
      std::int64_t i = b;
      if (dweight) {
        for (; i + lanes <= stop; i += lanes) {
          const auto g = hn::LoadU(d, dy + i);
          const auto z = hn::Mul(hn::Sub(hn::LoadU(d, x + i), vm), vr);
          const auto gg = hn::Mul(g, hn::LoadU(d, gain + i));
          hn::StoreU(hn::MulAdd(g, z, hn::LoadU(d, dw + i)), d, dw + i);
          hn::StoreU(hn::Add(g, hn::LoadU(d, db + i)), d, db + i);
          p0 = hn::Add(p0, gg);
          q0 = hn::MulAdd(gg, z, q0);
        }
      } else {
        for (; i + 2 * lanes <= stop; i += 2 * lanes) {
          const auto z0 = hn::Mul(hn::Sub(hn::LoadU(d, x + i), vm), vr);
          const auto z1 = hn::Mul(hn::Sub(hn::LoadU(d, x + i + lanes), vm), vr);
          const auto g0 = hn::Mul(hn::LoadU(d, dy + i), hn::LoadU(d, gain + i));
          const auto g1 = hn::Mul(hn::LoadU(d, dy + i + lanes), hn::LoadU(d, gain + i + lanes));
          p0 = hn::Add(p0, g0);
          p1 = hn::Add(p1, g1);
          q0 = hn::MulAdd(g0, z0, q0);
          q1 = hn::MulAdd(g1, z1, q1);
        }
      }
      for (; i < stop; i += lanes) {
        const std::int64_t k = HWY_MIN(lanes, stop - i);
        const auto g = LoadTail(d, dy + i, k);
        const auto z = hn::Mul(hn::Sub(LoadTail(d, x + i, k), vm), vr);
        const auto gg = hn::Mul(g, LoadTail(d, gain + i, k));
        if (dweight) {
          StoreTail(hn::MulAdd(g, z, LoadTail(d, dw + i, k)), d, dw + i, k);
          StoreTail(hn::Add(g, LoadTail(d, db + i, k)), d, db + i, k);
        }
        p1 = hn::Add(p1, gg);
        q1 = hn::MulAdd(gg, z, q1);
      }
      s1 += static_cast<double>(SumLanes(d, hn::Add(p0, p1)));
      s2 += static_cast<double>(SumLanes(d, hn::Add(q0, q1)));
    }
    if (!a.dx) continue;
    T* HWY_RESTRICT dx = a.dx + r * s.cols;
    const std::int64_t n = s.counted;
    const T c1 = s.centre ? static_cast<T>(s1 / static_cast<double>(n)) : T{0};
    const T c2 = static_cast<T>(s2 / static_cast<double>(n));
    const auto gain_at = [&](std::int64_t i, std::int64_t k) HWY_ATTR {
      return k == lanes ? hn::LoadU(d, gain + i) : LoadTail(d, gain + i, k);
    };
    WriteDx(d, dy, x, n, gain_at, mean, a.rstd[r], c1, c2, a.accumulate_dx, dx);
    if (n < s.cols) {
      const auto gain_behind = [&](std::int64_t i, std::int64_t k)
                                   HWY_ATTR { return gain_at(n + i, k); };
      WriteDx(d, dy + n, x + n, s.cols - n, gain_behind, mean, a.rstd[r], T{0}, T{0},
              a.accumulate_dx, dx + n);
    }
  }
}

// Rows begin..end-1 where `space` elements share a gain. dweight and dbias get one sum for every
// channel of every row: rows * (cols / space).
template <class T>
HWY_NOINLINE void BackwardSegments(const RowsBackward<T>& a, std::int64_t begin, std::int64_t end,
                                   T* dweight, T* dbias) {
  const hn::ScalableTag<T> d;
  const RowsShape& s = a.shape;
  const std::int64_t per_row = s.cols / s.space;
  for (std::int64_t r = begin; r < end; ++r) {
    const T* HWY_RESTRICT x = a.x + r * s.cols;
    const T* HWY_RESTRICT dy = a.dy + r * s.cols;
    const T* HWY_RESTRICT gain = a.gain + (r % s.groups) * per_row;
    const T mean = a.mean ? a.mean[r] : T{0};
    const auto vm = hn::Set(d, mean), vr = hn::Set(d, a.rstd[r]);
    double s1 = 0, s2 = 0;
    for (std::int64_t c = 0; c < per_row; ++c) {
      const T* HWY_RESTRICT xc = x + c * s.space;
      const T* HWY_RESTRICT gc = dy + c * s.space;
      const auto [p, q] = ProductsOf(d, xc, gc, s.space, vm, vr);
      if (dweight) {
        dweight[r * per_row + c] = static_cast<T>(q);
        dbias[r * per_row + c] = static_cast<T>(p);
      }
      s1 += p * static_cast<double>(gain[c]);
      s2 += q * static_cast<double>(gain[c]);
    }
    if (!a.dx) continue;
    const double n = static_cast<double>(s.cols);
    const T c1 = s.centre ? static_cast<T>(s1 / n) : T{0};
    const T c2 = static_cast<T>(s2 / n);
    for (std::int64_t c = 0; c < per_row; ++c) {
      const auto g = hn::Set(d, gain[c]);
      const auto gain_at = [&](std::int64_t, std::int64_t) HWY_ATTR { return g; };
      const std::int64_t at = r * s.cols + c * s.space;
      WriteDx(d, a.dy + at, a.x + at, s.space, gain_at, mean, a.rstd[r], c1, c2, a.accumulate_dx,
              a.dx + at);
    }
  }
}

#define NORMA_DEFINE(NAME, T)                                                                   \
  void Forward##NAME(const RowsForward<T>& a, std::int64_t b, std::int64_t e) {                 \
    Forward<T>(a, b, e);                                                                        \
  }                                                                                             \
  void Backward##NAME(const RowsBackward<T>& a, std::int64_t b, std::int64_t e, T* dw, T* db) { \
    a.shape.space == 1 ? BackwardElements<T>(a, b, e, dw, db)                                   \
                       : BackwardSegments<T>(a, b, e, dw, db);                                  \
  }
NORMA_DEFINE(F32, float)
NORMA_DEFINE(F64, double)
#undef NORMA_DEFINE

}  // namespace norma::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace norma::kernels {
namespace {

HWY_EXPORT(ForwardF32);
HWY_EXPORT(ForwardF64);
HWY_EXPORT(BackwardF32);
HWY_EXPORT(BackwardF64);

void run(const RowsForward<float>& a, std::int64_t b, std::int64_t e) {
  HWY_DYNAMIC_DISPATCH(ForwardF32)(a, b, e);
}
void run(const RowsForward<double>& a, std::int64_t b, std::int64_t e) {
  HWY_DYNAMIC_DISPATCH(ForwardF64)(a, b, e);
}
void run(const RowsBackward<float>& a, std::int64_t b, std::int64_t e, float* dw, float* db) {
  HWY_DYNAMIC_DISPATCH(BackwardF32)(a, b, e, dw, db);
}
void run(const RowsBackward<double>& a, std::int64_t b, std::int64_t e, double* dw, double* db) {
  HWY_DYNAMIC_DISPATCH(BackwardF64)(a, b, e, dw, db);
}

// Rows of a chunk: at least 32k elements, at most a sixteenth of the rows, at most 256 rows (their
// sums of dweight are kept in the type itself). See Note [Fixed chunks].
std::int64_t grain(const RowsShape& s) {
  const std::int64_t small = std::max<std::int64_t>(1, 32768 / std::max<std::int64_t>(1, s.cols));
  return std::min<std::int64_t>(256, std::max(small, s.rows / 16));
}

// weight + gain_offset, or ones: `own` is used where the weight itself does not serve.
template <class T>
const T* effective_gain(const RowsShape& s, const T* weight, std::vector<T>& own) {
  if (weight && s.gain_offset == 0) return weight;
  own.assign(static_cast<std::size_t>(s.channels()), T{1});
  for (std::size_t c = 0; weight && c < own.size(); ++c) {
    own[c] = weight[c] + static_cast<T>(s.gain_offset);
  }
  return own.data();
}

// out[c] (+)= parts[0][c] + parts[1][c] + ..., in f64.
template <class T>
void combine(const T* parts, std::int64_t count, std::int64_t channels, bool accumulate, T* out) {
  constexpr std::int64_t kWidth = 64;
  // A chunk adds at least 32k numbers.
  const std::int64_t chunk = (32768 / std::max<std::int64_t>(1, count) + kWidth) / kWidth * kWidth;
  const auto columns = [&](std::int64_t c0, std::int64_t n) {
    double sums[kWidth] = {};
    for (std::int64_t p = 0; p < count; ++p) {
      for (std::int64_t c = 0; c < n; ++c) {
        sums[c] += static_cast<double>(parts[p * channels + c0 + c]);
      }
    }
    for (std::int64_t c = 0; c < n; ++c) {
      const T before = accumulate ? out[c0 + c] : T{0};
      out[c0 + c] = before + static_cast<T>(sums[c]);
    }
  };
  parallel_for(channels, chunk, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t c = begin; c < end; c += kWidth) columns(c, std::min(kWidth, end - c));
  });
}

template <class T>
void forward(const RowsShape& s, const T* x, const T* weight, const T* bias, T* y, T* mean, T* rstd,
             T* var, bool known) {
  if (s.cols == 0) return;
  std::vector<T> own;
  const RowsForward<T> a{s, x, effective_gain(s, weight, own), bias, y, mean, rstd, var, known};
  parallel_for(s.rows, grain(s), [&](std::int64_t b, std::int64_t e) { run(a, b, e); });
}

template <class T>
void backward(const RowsShape& s, const T* dy, const T* x, const T* weight, const T* mean,
              const T* rstd, const NormGradients<T>& out) {
  const std::int64_t channels = s.cols == 0 ? 0 : s.channels();
  std::vector<T> own;
  const T* gain = s.cols == 0 ? nullptr : effective_gain(s, weight, own);
  const RowsBackward<T> a{s, dy, x, gain, mean, rstd, out.dx, out.accumulate_dx};
  const bool sums = out.dweight || out.dbias;
  const std::int64_t rows_per_chunk = grain(s);
  // One partial sum a chunk, or, where a channel is a segment, one a sample.
  const bool segments = s.space > 1;
  const std::int64_t parts =
      segments ? s.rows / s.groups : (s.rows + rows_per_chunk - 1) / rows_per_chunk;
  const std::int64_t each = parts * channels;
  const Ref<Storage> partial =
      Storage::allocate(sums ? 2 * each * static_cast<std::int64_t>(sizeof(T)) : 0);
  T* const dw = sums ? reinterpret_cast<T*>(partial->data()) : nullptr;
  T* const db = sums ? dw + each : nullptr;
  if (s.cols > 0) {
    parallel_for(s.rows, rows_per_chunk, [&](std::int64_t b, std::int64_t e) {
      if (!sums || segments) return run(a, b, e, dw, db);
      const std::int64_t offset = b / rows_per_chunk * channels;
      std::fill_n(dw + offset, channels, T{0});
      std::fill_n(db + offset, channels, T{0});
      run(a, b, e, dw + offset, db + offset);
    });
  }
  if (out.dweight) combine(dw, parts, channels, out.accumulate_dweight, out.dweight);
  if (out.dbias) combine(db, parts, channels, out.accumulate_dbias, out.dbias);
}

}  // namespace

void norm_rows_forward(const RowsShape& shape, const float* x, const float* weight,
                       const float* bias, float* y, float* mean, float* rstd, float* var) {
  forward(shape, x, weight, bias, y, mean, rstd, var, false);
}
void norm_rows_forward(const RowsShape& shape, const double* x, const double* weight,
                       const double* bias, double* y, double* mean, double* rstd, double* var) {
  forward(shape, x, weight, bias, y, mean, rstd, var, false);
}
void norm_rows_again(const RowsShape& shape, const float* x, const float* weight, const float* bias,
                     const float* mean, const float* rstd, float* y) {
  forward<float>(shape, x, weight, bias, y, const_cast<float*>(mean), const_cast<float*>(rstd),
                 nullptr, true);
}
void norm_rows_again(const RowsShape& shape, const double* x, const double* weight,
                     const double* bias, const double* mean, const double* rstd, double* y) {
  forward<double>(shape, x, weight, bias, y, const_cast<double*>(mean), const_cast<double*>(rstd),
                  nullptr, true);
}
void norm_rows_backward(const RowsShape& shape, const float* dy, const float* x,
                        const float* weight, const float* mean, const float* rstd,
                        const NormGradients<float>& out) {
  backward(shape, dy, x, weight, mean, rstd, out);
}
void norm_rows_backward(const RowsShape& shape, const double* dy, const double* x,
                        const double* weight, const double* mean, const double* rstd,
                        const NormGradients<double>& out) {
  backward(shape, dy, x, weight, mean, rstd, out);
}

}  // namespace norma::kernels
#endif  // HWY_ONCE
