#include "core/kernels/norm_rows.h"

#include <algorithm>
#include <vector>

#include "core/kernels/divide.h"
#include "core/kernels/norm_rows_task.h"
#include "core/kernels/past_cache.h"
#include "core/parallel.h"
#include "core/storage.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/norm_rows.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "core/kernels/norm_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace norma::kernels::HWY_NAMESPACE {

#define NORMA_DEFINE(NAME, T)                                                                   \
  void Forward##NAME(const RowsForward<T>& a, std::int64_t b, std::int64_t e) {                 \
    Forward<T>(a, b, e);                                                                        \
  }                                                                                             \
  void Backward##NAME(const RowsBackward<T>& a, std::int64_t b, std::int64_t e, T* dw, T* db) { \
    Backward<T>(a, b, e, dw, db);                                                               \
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

// Rows of a chunk: some 32k elements, or a sixteenth of the rows where that is more (an eighth of
// long ones, since each chunk has sums as long as a row), at most 256 rows (their sums of dweight
// are kept in the type itself). See Note [Fixed chunks].
std::int64_t grain(const RowsShape& s) {
  const std::int64_t small = std::max<std::int64_t>(1, 32768 / std::max<std::int64_t>(1, s.cols));
  const std::int64_t part = s.rows / (s.cols > 4 * 4096 ? 8 : 16);
  return even_grain(s.rows, std::min<std::int64_t>(256, std::max(small, part)));
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

// See Note [Past the cache]; `arrays` of the shape move.
template <class T>
bool past(const RowsShape& s, const T* result, std::int64_t arrays) {
  const bool matrix = s.space == 1;
  return past_cache(result, matrix ? s.cols : s.space,
                    arrays * s.rows * s.cols * static_cast<std::int64_t>(sizeof(T)),
                    matrix ? NextReader::product : NextReader::any);
}

template <class T>
void forward(const RowsShape& s, const T* x, const T* weight, const T* bias, T* y, T* mean, T* rstd,
             T* var, bool known) {
  if (s.cols == 0) return;
  std::vector<T> own;
  const RowsForward<T> a{
      s, x, effective_gain(s, weight, own), bias, y, mean, rstd, var, known, past(s, y, 2)};
  parallel_for(s.rows, grain(s), [&](std::int64_t b, std::int64_t e) { run(a, b, e); });
}

template <class T>
void backward(const RowsShape& s, const T* dy, const T* x, const T* weight, const T* mean,
              const T* rstd, const NormGradients<T>& out) {
  const std::int64_t channels = s.cols == 0 ? 0 : s.channels();
  std::vector<T> own;
  const T* gain = s.cols == 0 ? nullptr : effective_gain(s, weight, own);
  const RowsBackward<T> a{s,
                          dy,
                          x,
                          gain,
                          mean,
                          rstd,
                          out.dx,
                          out.accumulate_dx,
                          !out.accumulate_dx && s.counted == s.cols && past(s, out.dx, 3)};
  const bool sums = out.dweight || out.dbias;
  const std::int64_t rows_per_chunk = grain(s);
  // One partial sum a chunk, or, where a channel is a segment, one a sample.
  const bool segments = s.space > 1;
  const std::int64_t parts = segments ? s.rows / s.groups : divide_up(s.rows, rows_per_chunk);
  const std::int64_t each = parts * channels;
  const Ref<Storage> partial =
      Storage::allocate(sums ? 2 * each * static_cast<std::int64_t>(sizeof(T)) : 0);
  T* const dw = sums ? reinterpret_cast<T*>(partial->data()) : nullptr;
  T* const db = sums ? dw + each : nullptr;
  if (s.cols > 0) {
    parallel_for(s.rows, rows_per_chunk, [&](std::int64_t b, std::int64_t e) {
      if (!sums || segments) return run(a, b, e, dw, db);
      const std::int64_t offset = b / rows_per_chunk * channels;
      if (e - b < s.groups) {  // not every channel has a row
        std::fill_n(dw + offset, channels, T{0});
        std::fill_n(db + offset, channels, T{0});
      }
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
