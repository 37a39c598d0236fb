// How a matrix product is cut into tiles, and one of them computed on the calling thread.
#pragma once

#include <cstdint>

#include "core/kernels/gemm.h"

namespace norma::kernels {

// Multiplications that are worth a chunk of a parallel loop: 4 us on one core of 2024.
inline constexpr std::int64_t kChunkProducts = 512 * 1024;
// Up to here a product runs in one piece.
inline constexpr std::int64_t kSerialProducts = 768 * 1024;
// Unless a tile is the whole product, the columns of a tile are a multiple of it.
inline constexpr std::int64_t kTileCols = 32;

// The same product, with leading dimensions of dense matrices where they are 0.
[[nodiscard]] Product with_leading_dimensions(Product p);

// The size of the tiles of a product C (m, n), numbered row by row; those at the lower and the
// right edge may be smaller.
struct Tiling {
  std::int64_t rows = 0, cols = 0;
};
// See Note [Tiles of a product] in gemm_tiles.cpp. A function of the sizes alone.
[[nodiscard]] Tiling choose_tiles(const Product& p, std::int64_t batch);

// Where a tile begins in C, and its size.
struct TilePlace {
  std::int64_t i, j, rows, cols;
};
[[nodiscard]] TilePlace place_of_tile(const Product& p, const Tiling& t, std::int64_t tile);

// What a tile that begins at column j of op(B) reads of it first; past its end, what lies there.
template <class T>
[[nodiscard]] MatrixRows<T> first_panel(const Product& p, const T* b, std::int64_t j);

// C = alpha op(A) op(B) + beta C, then the epilogue, as for gemm().
template <class T>
struct TiledProduct {
  Product p;  // with leading dimensions
  Tiling tiling;
  T alpha;
  const T* a;
  const T* b;
  T beta;
  T* c;
  Epilogue<T> epilogue{};
  bool alone = false;  // no other thread works on the product
};
// Computes one tile of it. `next`: what the thread reads then.
template <class T>
void run_tile(const TiledProduct<T>& product, std::int64_t tile, const MatrixRows<T>& next);

// C = alpha op(A) op(B) + beta C + bias (n), which may be null, in one piece, which OpenBLAS never
// computes. The leading dimensions must be given. `alone` and `next` as above.
void whole_product(const Product& p, float alpha, const float* a, const float* b, float beta,
                   const float* bias, float* c, bool alone, const MatrixRows<float>& next = {});
void whole_product(const Product& p, double alpha, const double* a, const double* b, double beta,
                   const double* bias, double* c, bool alone, const MatrixRows<double>& next = {});

}  // namespace norma::kernels
