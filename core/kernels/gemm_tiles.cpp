// Note [Tiles of a product]. The product is cut into tiles of C, and each tile is computed by one
// thread: a panel of B (256 x 2 vectors) is copied, transposed if need be, into the first-level
// cache, and all rows of the tile run against it, 8 by two vectors of C in registers at a time (6
// with less than AVX-512). Packing costs about 8 / rows of the time, so a tile has up to 256 rows
// and as few columns as give enough tiles for 8 threads. OpenBLAS 0.3.21 reaches 60 to 97 % of the
// same speed on one thread at the sizes of the models here: it packs both operands of every tile
// again, and with A B^T, the product of every linear layer, that shows most. Where all three sizes
// are large it wins, and computes the tiles; see blas.h.
#include "core/kernels/gemm_tiles.h"

#include <algorithm>

#include "core/kernels/blas.h"
#include "core/kernels/divide.h"
#include "core/kernels/row_sums.h"
#include "core/kernels/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/gemm_tiles.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "core/kernels/gemm_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace norma::kernels {
namespace HWY_NAMESPACE {
namespace {

template <class T>
void Tile(const Product& p, T alpha, const T* a, const T* b, T beta, const T* bias, T* c,
          bool alone, const MatrixRows<T>& after) {
  T* panel = scratch<T>(Scratch::panel, kPanelDepth * kPanelCols<T>);
  // Worth its time where each row of A is in a page of its own, and the tile many panels wide.
  const bool copies = p.transpose_a && p.m <= kPanelDepth && p.n > 8 * kPanelCols<T> &&
                      p.lda * static_cast<std::int64_t>(sizeof(T)) >= 4096;
  T* copy = copies ? scratch<T>(Scratch::rows, kPanelDepth * copied_pitch<T>(p.m)) : nullptr;
  tile_product(p, alpha, a, b, beta, bias, c, alone, panel, copy, after);
}

void TileF32(const Product& p, float alpha, const float* a, const float* b, float beta,
             const float* bias, float* c, bool alone, const MatrixRows<float>& after) {
  Tile(p, alpha, a, b, beta, bias, c, alone, after);
}
void TileF64(const Product& p, double alpha, const double* a, const double* b, double beta,
             const double* bias, double* c, bool alone, const MatrixRows<double>& after) {
  Tile(p, alpha, a, b, beta, bias, c, alone, after);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace norma::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace norma::kernels {

HWY_EXPORT(TileF32);
HWY_EXPORT(TileF64);

namespace {

// Tiles of a large product: a multiple of 2, 3, 4, 6 and 8 threads.
constexpr std::int64_t kMostTiles = 24;
constexpr std::int64_t kTileRows = 256;

}  // namespace

void whole_product(const Product& p, float alpha, const float* a, const float* b, float beta,
                   const float* bias, float* c, bool alone, const MatrixRows<float>& next) {
  HWY_DYNAMIC_DISPATCH(TileF32)(p, alpha, a, b, beta, bias, c, alone, next);
}
void whole_product(const Product& p, double alpha, const double* a, const double* b, double beta,
                   const double* bias, double* c, bool alone, const MatrixRows<double>& next) {
  HWY_DYNAMIC_DISPATCH(TileF64)(p, alpha, a, b, beta, bias, c, alone, next);
}

Product with_leading_dimensions(Product p) {
  if (p.lda == 0) p.lda = p.transpose_a ? p.m : p.k;
  if (p.ldb == 0) p.ldb = p.transpose_b ? p.k : p.n;
  if (p.ldc == 0) p.ldc = p.n;
  return p;
}

Tiling choose_tiles(const Product& p, std::int64_t batch) {
  const std::int64_t products = p.m * p.n * std::max<std::int64_t>(p.k, 1);
  const std::int64_t wanted = std::clamp<std::int64_t>(divide_up(products, kChunkProducts), 1,
                                                       divide_up(kMostTiles, batch));
  const auto part = [](std::int64_t size, std::int64_t parts, std::int64_t step) {
    return round_up(divide_up(size, parts), step);
  };
  // An even number of tiles below each other, where that is possible (below some 7,600 rows): two
  // threads then meet in the middle of the rows, as in loops over these.
  const std::int64_t down = divide_up(p.m, kTileRows);
  Tiling t{part(p.m, down == 1 ? 1 : round_up(down, 2), 8), p.n};
  if (products <= kSerialProducts) return {p.m, p.n};
  if (prefers_blas(p)) return {part(p.m, 4, 8), part(p.n, kMostTiles / 4, kTileCols)};
  t.cols = part(p.n, divide_up(wanted, divide_up(p.m, t.rows)), kTileCols);
  const std::int64_t across = divide_up(p.n, t.cols);
  if (2 * across * divide_up(p.m, t.rows) <= wanted) {
    // Too few columns: shorter tiles, though not so short that packing B for each of them shows;
    // again an even number, of one size where the rows allow it.
    const std::int64_t least = p.transpose_b ? 96 : 32;
    const std::int64_t most = std::min(divide_up(wanted, across), p.m / least);
    std::int64_t below = most > 2 ? most - most % 2 : p.m > least ? 2 : 1;
    while (below > 2 && divide_up(p.m, part(p.m, below, 8)) % 2 != 0) below -= 2;
    t.rows = std::min(t.rows, part(p.m, below, 8));
  }
  return t;
}

TilePlace place_of_tile(const Product& p, const Tiling& t, std::int64_t tile) {
  const std::int64_t across = divide_up(p.n, t.cols);
  const std::int64_t i = tile / across * t.rows, j = tile % across * t.cols;
  return {i, j, std::min(t.rows, p.m - i), std::min(t.cols, p.n - j)};
}

// Note [What is read next]. The first panel of a tile comes from beyond the second-level cache, and
// nothing is computed meanwhile: with as few columns as tiles have here that is a good part of
// their time, the more so as every thread reads all of B. So a tile asks, beside its last panel,
// for the first one of the tile that follows; the last of a row of tiles (as a rule a thread has
// one row) for that of the group's next product, or, behind the weight of a linear layer, for what
// lies there: the parameters of a model stand in flat memory in the order of their use
// (core/flat.h), so that it is a bias and the next weight. Where that guess is wrong nothing is
// lost but the asking. A step of `deep` takes 2 to 3 % less.
template <class T>
MatrixRows<T> first_panel(const Product& p, const T* b, std::int64_t j) {
  const std::int64_t depth = std::min(p.k, HWY_NAMESPACE::kPanelDepth);
  return p.transpose_b ? MatrixRows<T>{b + j * p.ldb, p.ldb, kTileCols, depth}
                       : MatrixRows<T>{b + j, p.ldb, depth, std::min(kTileCols, p.n - j)};
}
template MatrixRows<float> first_panel(const Product&, const float*, std::int64_t);
template MatrixRows<double> first_panel(const Product&, const double*, std::int64_t);

template <class T>
void run_tile(const TiledProduct<T>& product, std::int64_t tile, const MatrixRows<T>& next) {
  const auto& [p, tiling, alpha, a, b, beta, c, e, alone] = product;
  const auto [i0, j0, height, width] = place_of_tile(p, tiling, tile);
  Product q = p;
  q.m = height;
  q.n = width;
  // With `pre` the product goes there, and the activation from there to c.
  T* to = c + i0 * p.ldc + j0;
  T* out = e.pre ? e.pre + i0 * p.n + j0 : to;
  if (e.pre) q.ldc = p.n;
  const T* rows = a + (p.transpose_a ? i0 : i0 * p.lda);
  const T* columns = b + (p.transpose_b ? j0 * p.ldb : j0);
  const T* bias = e.bias ? e.bias + j0 : nullptr;
  if (prefers_blas(p)) {
    blas_product(q, alpha, rows, columns, beta, out);
    if (bias) add_matrix(bias, 0, q.m, q.n, out, q.ldc);
  } else {
    whole_product(q, alpha, rows, columns, beta, bias, out, alone, next);
  }
  if (e.activation) activate_rows(*e.activation, out, q.ldc, to, p.ldc, q.m, q.n);
  if (e.residual) add_matrix(e.residual + i0 * p.n + j0, p.n, q.m, q.n, to, p.ldc);
}
template void run_tile(const TiledProduct<float>&, std::int64_t, const MatrixRows<float>&);
template void run_tile(const TiledProduct<double>&, std::int64_t, const MatrixRows<double>&);

}  // namespace norma::kernels
#endif  // HWY_ONCE
