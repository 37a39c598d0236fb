// Note [Tiles of a product]. The product is cut into tiles of C, and each tile is computed by one
// thread: a panel of B (256 x 2 vectors) is copied, transposed if need be, into the first-level
// cache, and all rows of the tile run against it, eight by two vectors of C in registers at a time.
// Packing costs about 8 / rows of the time, so a tile has up to 256 rows and as few columns as give
// enough tiles for 8 threads. OpenBLAS 0.3.21 reaches 60 to 97 % of the same speed on one thread at
// the sizes of the models here: it packs both operands of every tile again, and with A B^T, the
// product of every linear layer, that shows most. Where all three sizes are large it wins, and
// computes the tiles; see blas.h.
#include "core/kernels/gemm.h"

#include <algorithm>

#include "core/kernels/blas.h"
#include "core/kernels/scratch.h"
#include "core/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/gemm.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "core/kernels/gemm_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace norma::kernels {
namespace HWY_NAMESPACE {
namespace {

// for j: y[j] += x[j]
template <class T>
void AddRow(const T* x, std::int64_t n, T* y) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    hn::StoreU(hn::Add(hn::LoadU(d, y + j), hn::LoadU(d, x + j)), d, y + j);
  }
  for (; j < n; ++j) y[j] += x[j];
}

// for i, j: y[j] += x[i * stride + j], with four partial sums
template <class T>
void SumBlock(const T* x, std::int64_t rows, std::int64_t n, std::int64_t stride, T* y) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    auto s0 = hn::Zero(d), s1 = hn::Zero(d), s2 = hn::Zero(d), s3 = hn::Zero(d);
    std::int64_t i = 0;
    for (; i + 4 <= rows; i += 4) {
      const T* p = x + i * stride + j;
      s0 = hn::Add(s0, hn::LoadU(d, p));
      s1 = hn::Add(s1, hn::LoadU(d, p + stride));
      s2 = hn::Add(s2, hn::LoadU(d, p + 2 * stride));
      s3 = hn::Add(s3, hn::LoadU(d, p + 3 * stride));
    }
    for (; i < rows; ++i) s0 = hn::Add(s0, hn::LoadU(d, x + i * stride + j));
    const auto sum = hn::Add(hn::Add(s0, s1), hn::Add(s2, s3));
    hn::StoreU(hn::Add(hn::LoadU(d, y + j), sum), d, y + j);
  }
  for (; j < n; ++j) {
    T s = 0;
    for (std::int64_t i = 0; i < rows; ++i) s += x[i * stride + j];
    y[j] += s;
  }
}

template <class T>
void Tile(const Product& p, T alpha, const T* a, const T* b, T beta, T* c) {
  T* panel = scratch<T>(Scratch::panel, kPanelDepth * kPanelCols<T>);
  tile_product(p, alpha, a, b, beta, c, panel);
}

void TileF32(const Product& p, float alpha, const float* a, const float* b, float beta, float* c) {
  Tile(p, alpha, a, b, beta, c);
}
void TileF64(const Product& p, double alpha, const double* a, const double* b, double beta,
             double* c) {
  Tile(p, alpha, a, b, beta, c);
}
void AddRowF32(const float* x, std::int64_t n, float* y) { AddRow(x, n, y); }
void AddRowF64(const double* x, std::int64_t n, double* y) { AddRow(x, n, y); }
void SumBlockF32(const float* x, std::int64_t r, std::int64_t n, std::int64_t s, float* y) {
  SumBlock(x, r, n, s, y);
}
void SumBlockF64(const double* x, std::int64_t r, std::int64_t n, std::int64_t s, double* y) {
  SumBlock(x, r, n, s, y);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace norma::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace norma::kernels {

HWY_EXPORT(TileF32);
HWY_EXPORT(TileF64);
HWY_EXPORT(AddRowF32);
HWY_EXPORT(AddRowF64);
HWY_EXPORT(SumBlockF32);
HWY_EXPORT(SumBlockF64);

namespace {

void add_row(const float* x, std::int64_t n, float* y) { HWY_DYNAMIC_DISPATCH(AddRowF32)(x, n, y); }
void add_row(const double* x, std::int64_t n, double* y) {
  HWY_DYNAMIC_DISPATCH(AddRowF64)(x, n, y);
}
void sum_block(const float* x, std::int64_t r, std::int64_t n, std::int64_t s, float* y) {
  HWY_DYNAMIC_DISPATCH(SumBlockF32)(x, r, n, s, y);
}
void sum_block(const double* x, std::int64_t r, std::int64_t n, std::int64_t s, double* y) {
  HWY_DYNAMIC_DISPATCH(SumBlockF64)(x, r, n, s, y);
}

// Multiplications that are worth a chunk of a parallel loop: 4 us on one core of 2024.
constexpr std::int64_t kChunkProducts = 512 * 1024;
// Up to here a product runs in one piece.
constexpr std::int64_t kSerialProducts = 768 * 1024;
// Tiles of a large product: a multiple of 2, 3, 4, 6 and 8 threads.
constexpr std::int64_t kMostTiles = 24;
constexpr std::int64_t kTileRows = 256;
constexpr std::int64_t kTileCols = 32;  // the columns of a tile are a multiple of it

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
std::int64_t round_up(std::int64_t a, std::int64_t b) { return divide_up(a, b) * b; }

void tile_product(const Product& p, float alpha, const float* a, const float* b, float beta,
                  float* c) {
  HWY_DYNAMIC_DISPATCH(TileF32)(p, alpha, a, b, beta, c);
}
void tile_product(const Product& p, double alpha, const double* a, const double* b, double beta,
                  double* c) {
  HWY_DYNAMIC_DISPATCH(TileF64)(p, alpha, a, b, beta, c);
}

Product with_leading_dimensions(Product p) {
  if (p.lda == 0) p.lda = p.transpose_a ? p.m : p.k;
  if (p.ldb == 0) p.ldb = p.transpose_b ? p.k : p.n;
  if (p.ldc == 0) p.ldc = p.n;
  return p;
}

struct Tiling {
  std::int64_t rows, cols;
};

// See Note [Tiles of a product]. A function of the sizes alone.
Tiling choose_tiles(const Product& p, std::int64_t batch) {
  const std::int64_t products = p.m * p.n * std::max<std::int64_t>(p.k, 1);
  const std::int64_t wanted = std::clamp<std::int64_t>(divide_up(products, kChunkProducts), 1,
                                                       divide_up(kMostTiles, batch));
  const auto part = [](std::int64_t size, std::int64_t parts, std::int64_t step) {
    return round_up(divide_up(size, parts), step);
  };
  Tiling t{part(p.m, divide_up(p.m, kTileRows), 8), p.n};
  if (products <= kSerialProducts) return {p.m, p.n};
  if (prefers_blas(p)) return {part(p.m, 4, 8), part(p.n, kMostTiles / 4, kTileCols)};
  t.cols = part(p.n, divide_up(wanted, divide_up(p.m, t.rows)), kTileCols);
  const std::int64_t across = divide_up(p.n, t.cols);
  if (2 * across * divide_up(p.m, t.rows) <= wanted) {
    // Too few columns: shorter tiles, though not so short that packing B for each of them shows.
    const std::int64_t least = p.transpose_b ? 96 : 32;
    t.rows = std::min(t.rows, std::max(least, part(p.m, divide_up(wanted, across), 8)));
  }
  return t;
}

template <class T>
void run_tile(const Product& p, const Tiling& t, std::int64_t tile, T alpha, const T* a, const T* b,
              T beta, T* c, const Epilogue<T>& e) {
  const std::int64_t across = divide_up(p.n, t.cols);
  const std::int64_t i0 = tile / across * t.rows, j0 = tile % across * t.cols;
  Product q = p;
  q.m = std::min(t.rows, p.m - i0);
  q.n = std::min(t.cols, p.n - j0);
  T* out = c + i0 * p.ldc + j0;
  const T* rows = a + (p.transpose_a ? i0 : i0 * p.lda);
  const T* columns = b + (p.transpose_b ? j0 * p.ldb : j0);
  if (prefers_blas(p)) {
    blas_product(q, alpha, rows, columns, beta, out);
  } else {
    tile_product(q, alpha, rows, columns, beta, out);
  }
  if (!e.bias && !e.pre && !e.activation) return;
  for (std::int64_t i = 0; i < q.m; ++i) {
    T* row = out + i * p.ldc;
    if (e.bias) add_row(e.bias + j0, q.n, row);
    if (e.pre) std::copy(row, row + q.n, e.pre + (i0 + i) * p.n + j0);
    if (e.activation) activate(*e.activation, 0.0, row, row, q.n);
  }
}

template <class T>
void run(std::int64_t batch, const Product& sizes, T alpha, const T* a, BatchStep step_a,
         const T* b, BatchStep step_b, T beta, T* c, BatchStep step_c, const Epilogue<T>& e) {
  if (batch == 0 || sizes.m == 0 || sizes.n == 0) return;
  const Product p = with_leading_dimensions(sizes);
  const Tiling t = choose_tiles(p, batch);
  const std::int64_t tiles = divide_up(p.m, t.rows) * divide_up(p.n, t.cols);
  const std::int64_t tile_products = std::max<std::int64_t>(1, t.rows * t.cols * p.k);
  const std::int64_t all = batch * tiles;
  const std::int64_t grain =
      all * tile_products <= kSerialProducts ? all : divide_up(kChunkProducts, tile_products);
  parallel_for(all, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t item = i / tiles;
      run_tile(p, t, i % tiles, alpha, a + step_a.at(item), b + step_b.at(item), beta,
               c + step_c.at(item), e);
    }
  });
}

// Rows of one partial sum of sum_rows.
constexpr std::int64_t kSumRows = 64;

template <class T>
void run_sum_rows(const T* x, std::int64_t rows, std::int64_t cols, bool accumulate, T* y) {
  // Columns of a chunk: whole cache lines, at least 32k additions.
  const std::int64_t grain =
      round_up(std::max<std::int64_t>(64, 32768 / std::max<std::int64_t>(rows, 1)), 64);
  parallel_for(cols, grain, [&](std::int64_t begin, std::int64_t end) {
    if (!accumulate) std::fill(y + begin, y + end, T(0));
    for (std::int64_t i = 0; i < rows; i += kSumRows) {
      sum_block(x + i * cols + begin, std::min(kSumRows, rows - i), end - begin, cols, y + begin);
    }
  });
}

}  // namespace

void gemm(const Product& p, float alpha, const float* a, const float* b, float beta, float* c,
          const Epilogue<float>& epilogue) {
  run(1, p, alpha, a, {}, b, {}, beta, c, {}, epilogue);
}
void gemm(const Product& p, double alpha, const double* a, const double* b, double beta, double* c,
          const Epilogue<double>& epilogue) {
  run(1, p, alpha, a, {}, b, {}, beta, c, {}, epilogue);
}

void gemm_batched(std::int64_t batch, const Product& p, float alpha, const float* a,
                  BatchStep step_a, const float* b, BatchStep step_b, float beta, float* c,
                  BatchStep step_c) {
  run(batch, p, alpha, a, step_a, b, step_b, beta, c, step_c, {});
}
void gemm_batched(std::int64_t batch, const Product& p, double alpha, const double* a,
                  BatchStep step_a, const double* b, BatchStep step_b, double beta, double* c,
                  BatchStep step_c) {
  run(batch, p, alpha, a, step_a, b, step_b, beta, c, step_c, {});
}

namespace {
template <class T>
void run_serial(const Product& sizes, T alpha, const T* a, const T* b, T beta, T* c) {
  if (sizes.m == 0 || sizes.n == 0) return;
  tile_product(with_leading_dimensions(sizes), alpha, a, b, beta, c);
}
}  // namespace

void gemm_serial(const Product& p, float alpha, const float* a, const float* b, float beta,
                 float* c) {
  run_serial(p, alpha, a, b, beta, c);
}
void gemm_serial(const Product& p, double alpha, const double* a, const double* b, double beta,
                 double* c) {
  run_serial(p, alpha, a, b, beta, c);
}

void sum_rows(const float* x, std::int64_t rows, std::int64_t cols, bool accumulate, float* y) {
  run_sum_rows(x, rows, cols, accumulate, y);
}
void sum_rows(const double* x, std::int64_t rows, std::int64_t cols, bool accumulate, double* y) {
  run_sum_rows(x, rows, cols, accumulate, y);
}

}  // namespace norma::kernels
#endif  // HWY_ONCE
