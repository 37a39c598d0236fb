// The entry points of matrix products, as chunks of parallel loops: see gemm_tiles.cpp for what one
// tile is, and gemm_halves.h for sums over a batch.
#include "core/kernels/gemm.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "core/kernels/divide.h"
#include "core/kernels/gemm_halves.h"
#include "core/kernels/gemm_tiles.h"
#include "core/kernels/row_sums_task.h"
#include "core/parallel.h"

namespace norma::kernels {
namespace {

constexpr std::int64_t kLargestHalf = 128 * 1024;  // bytes of a result that is summed in halves
constexpr std::int64_t kHalfCols = 64;             // of a tile of it, which has half the depth

// A batch of products cut into tiles, `grain` of them a chunk.
template <class T>
struct ProductTask {
  Product p;
  T alpha = 1;
  const T* a = nullptr;
  BatchStep step_a{};
  const T* b = nullptr;
  BatchStep step_b{};
  T beta = 0;
  T* c = nullptr;
  BatchStep step_c{};
  Epilogue<T> epilogue{};
  Tiling tiling{};
  std::int64_t each = 0, all = 0, grain = 1;  // tiles of a product, of the batch, of a chunk
  bool alone = false;                         // no other thread works on the product
  std::span<const Factors<T>> more{};         // whose products are added
  MatrixRows<T> after{};                      // what is read after the last tile of a row of them
  Halves<T> halves{};                         // without: the product is summed as a whole

  void cut(std::int64_t batch) {
    if (batch == 0 || p.m == 0 || p.n == 0) return;
    p = with_leading_dimensions(p);
    if (batch == 1 && p.transpose_b && p.ldb == p.k) after = first_panel(p, b, p.n);
    tiling = choose_tiles(p, batch);
    const std::int64_t size = p.m * p.n;
    const bool plain = !epilogue.bias && !epilogue.pre && !epilogue.activation &&
                       !epilogue.residual && more.empty();
    const bool halved =
        batch == 1 && plain && p.transpose_a && !p.transpose_b && p.k >= 2 * kLeastHalf &&
        size * static_cast<std::int64_t>(sizeof(T)) <= kLargestHalf && size * p.k > kSerialProducts;
    if (halved) tiling.cols = std::min(kHalfCols, round_up(p.n, kTileCols));
    each = divide_up(p.m, tiling.rows) * divide_up(p.n, tiling.cols);
    all = batch * each;
    const std::int64_t products = std::max<std::int64_t>(1, tiling.rows * tiling.cols * p.k);
    grain = all * products <= kSerialProducts ? all : divide_up(kChunkProducts, products);
    if (halved) halves.allocate(size, each);
    alone = chunks() == 1 || num_threads() == 1 || in_parallel();
  }
  [[nodiscard]] std::int64_t chunks() const { return divide_up(all, grain) * (halves ? 2 : 1); }
  // How many of them come first.
  [[nodiscard]] std::int64_t first_chunks() const { return divide_up(chunks(), 2); }

  void run(std::int64_t chunk) const {
    const auto [half, piece] = half_piece(chunk, divide_up(all, grain));
    const std::int64_t begin = piece * grain, end = std::min(all, begin + grain);
    for (std::int64_t i = begin; i < end; ++i) {
      if (halves) {
        run_half(i, half);
        continue;
      }
      const std::int64_t item = i / each, tile = i % each;
      const T* const first = b + step_b.at(item);
      TiledProduct<T> product{.p = p,
                              .tiling = tiling,
                              .alpha = alpha,
                              .a = a + step_a.at(item),
                              .b = first,
                              .beta = beta,
                              .c = c + step_c.at(item),
                              .epilogue = epilogue,
                              .alone = alone};
      run_tile(product, tile,
               more.empty() ? next_of(p, tile, first) : panel_of(p, tile, more[0].b));
      product.beta = T(1);
      product.epilogue = {};
      for (std::size_t k = 0; k < more.size(); ++k) {
        product.a = more[k].a;
        product.b = more[k].b;
        run_tile(product, tile,
                 k + 1 == more.size() ? next_of(p, tile, first) : panel_of(p, tile, more[k + 1].b));
      }
    }
  }

 private:
  // The first panel of a tile, and of the one that follows.
  [[nodiscard]] MatrixRows<T> panel_of(const Product& q, std::int64_t tile, const T* from) const {
    return first_panel(q, from, tile % divide_up(p.n, tiling.cols) * tiling.cols);
  }
  [[nodiscard]] MatrixRows<T> next_of(const Product& q, std::int64_t tile, const T* from) const {
    return (tile + 1) % divide_up(p.n, tiling.cols) == 0 ? after : panel_of(q, tile + 1, from);
  }

  void run_half(std::int64_t tile, int h) const {
    const std::int64_t middle = round_up(p.k / 2, 8);
    TiledProduct<T> half{.p = p,
                         .tiling = tiling,
                         .alpha = alpha,
                         .a = a,
                         .b = b,
                         .beta = beta,
                         .c = c,
                         .alone = alone};
    if (h == 0) {
      half.p.k = middle;
    } else {
      half.p.k = p.k - middle;
      half.p.ldc = p.n;
      half.a = a + middle * p.lda;
      half.b = b + middle * p.ldb;
      half.beta = T(0);
      half.c = halves.second;
    }
    run_tile(half, tile, next_of(half.p, tile, half.b));
    if (!halves.last(tile)) return;
    const auto [i0, j0, rows, cols] = place_of_tile(p, tiling, tile);
    add_matrix(halves.second + i0 * p.n + j0, p.n, rows, cols, c + i0 * p.ldc + j0, p.ldc);
  }
};

template <class T>
void run(std::int64_t batch, ProductTask<T> task) {
  task.cut(batch);
  parallel_for(task.chunks(), 1, [&](std::int64_t chunk, std::int64_t) { task.run(chunk); });
}

// The first half of the chunks of all, and then the second; see Note [Halves of a batch].
template <class T>
void run_group(std::span<const ProductCall<T>> products, std::span<const RowSumCall<T>> sums) {
  require(products.size() <= kMostInGroup && sums.size() <= kMostInGroup,
          "gemm_group: expected at most {} products and sums; got {} and {}", kMostInGroup,
          products.size(), sums.size());
  std::array<ProductTask<T>, kMostInGroup> tiles;
  std::array<std::optional<RowSumTask<T>>, kMostInGroup> columns;
  std::int64_t chunks = 0, work = 0;
  for (std::size_t i = 0; i < products.size(); ++i) {
    const ProductCall<T>& call = products[i];
    tiles[i] = {.p = call.sizes, .a = call.a, .b = call.b, .beta = call.beta, .c = call.c};
    tiles[i].epilogue.bias = call.bias;
    tiles[i].more = call.more;
    tiles[i].cut(1);
    chunks += tiles[i].chunks();
    const auto terms = static_cast<std::int64_t>(1 + call.more.size());
    work += call.sizes.m * call.sizes.n * call.sizes.k * terms;
    require(call.more.empty() || !call.sizes.transpose_a,
            "gemm_group: a sum of products of a transposed A is not provided for");
    if (i > 0) tiles[i - 1].after = first_panel(tiles[i].p, tiles[i].b, 0);
  }
  for (std::size_t i = 0; i < sums.size(); ++i) chunks += columns[i].emplace(sums[i]).chunks();
  const auto run = [&](std::int64_t chunk) {
    for (const bool second : {false, true}) {
      const auto taken = [&](const auto& part) {
        const std::int64_t n = second ? part.chunks() - part.first_chunks() : part.first_chunks();
        if (chunk < n) part.run(second ? chunk + part.first_chunks() : chunk);
        chunk -= n;
        return chunk < 0;
      };
      for (std::size_t i = 0; i < products.size(); ++i) {
        if (taken(tiles[i])) return;
      }
      for (std::size_t i = 0; i < sums.size(); ++i) {
        if (taken(*columns[i])) return;
      }
    }
  };
  parallel_for(chunks, work <= kSerialProducts ? chunks : 1,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t c = begin; c < end; ++c) run(c);
               });
}

}  // namespace

void gemm(const Product& p, float alpha, const float* a, const float* b, float beta, float* c,
          const Epilogue<float>& epilogue) {
  run<float>(1,
             {.p = p, .alpha = alpha, .a = a, .b = b, .beta = beta, .c = c, .epilogue = epilogue});
}
void gemm(const Product& p, double alpha, const double* a, const double* b, double beta, double* c,
          const Epilogue<double>& epilogue) {
  run<double>(1,
              {.p = p, .alpha = alpha, .a = a, .b = b, .beta = beta, .c = c, .epilogue = epilogue});
}

void gemm_group(std::span<const ProductCall<float>> products,
                std::span<const RowSumCall<float>> sums) {
  run_group(products, sums);
}
void gemm_group(std::span<const ProductCall<double>> products,
                std::span<const RowSumCall<double>> sums) {
  run_group(products, sums);
}

namespace {
template <class T>
void run_batched(std::int64_t batch, const Product& p, T alpha, const T* a, BatchStep step_a,
                 const T* b, BatchStep step_b, T beta, T* c, BatchStep step_c) {
  run<T>(batch, {.p = p,
                 .alpha = alpha,
                 .a = a,
                 .step_a = step_a,
                 .b = b,
                 .step_b = step_b,
                 .beta = beta,
                 .c = c,
                 .step_c = step_c});
}
}  // namespace

void gemm_batched(std::int64_t batch, const Product& p, float alpha, const float* a,
                  BatchStep step_a, const float* b, BatchStep step_b, float beta, float* c,
                  BatchStep step_c) {
  run_batched(batch, p, alpha, a, step_a, b, step_b, beta, c, step_c);
}
void gemm_batched(std::int64_t batch, const Product& p, double alpha, const double* a,
                  BatchStep step_a, const double* b, BatchStep step_b, double beta, double* c,
                  BatchStep step_c) {
  run_batched(batch, p, alpha, a, step_a, b, step_b, beta, c, step_c);
}

namespace {
template <class T>
void run_serial(const Product& sizes, T alpha, const T* a, const T* b, T beta, T* c) {
  if (sizes.m == 0 || sizes.n == 0) return;
  whole_product(with_leading_dimensions(sizes), alpha, a, b, beta, nullptr, c, true);
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

}  // namespace norma::kernels
