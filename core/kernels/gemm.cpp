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
#include <array>
#include <atomic>
#include <new>

#include "core/error.h"
#include "core/kernels/blas.h"
#include "core/kernels/scratch.h"
#include "core/parallel.h"
#include "core/storage.h"

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
                  const float* bias, float* c, bool alone, const MatrixRows<float>& after = {}) {
  HWY_DYNAMIC_DISPATCH(TileF32)(p, alpha, a, b, beta, bias, c, alone, after);
}
void tile_product(const Product& p, double alpha, const double* a, const double* b, double beta,
                  const double* bias, double* c, bool alone, const MatrixRows<double>& after = {}) {
  HWY_DYNAMIC_DISPATCH(TileF64)(p, alpha, a, b, beta, bias, c, alone, after);
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

// Note [What is read next]. The first panel of a tile comes from beyond the second-level cache, and
// nothing is computed meanwhile: with as few columns as tiles have here that is a good part of
// their time, the more so as every thread reads all of B. So a tile asks, beside its last panel,
// for the first one of the tile that follows; the last of a row of tiles (as a rule a thread has
// one row) for that of the group's next product, or, behind the weight of a linear layer, for what
// lies there: the parameters of a model stand in flat memory in the order of their use
// (core/flat.h), so that it is a bias and the next weight. Where that guess is wrong nothing is
// lost but the asking. A step of `deep` takes 2 to 3 % less.

// What a tile that begins at column j of op(B) reads of it first; past its end, what lies there.
template <class T>
MatrixRows<T> first_panel(const Product& p, const T* b, std::int64_t j) {
  const std::int64_t depth = std::min(p.k, HWY_NAMESPACE::kPanelDepth);
  return p.transpose_b ? MatrixRows<T>{b + j * p.ldb, p.ldb, kTileCols, depth}
                       : MatrixRows<T>{b + j, p.ldb, depth, std::min(kTileCols, p.n - j)};
}

// `next`: what the thread reads then.
template <class T>
void run_tile(const Product& p, const Tiling& t, std::int64_t tile, T alpha, const T* a, const T* b,
              T beta, T* c, const Epilogue<T>& e, bool alone, const MatrixRows<T>& next) {
  const std::int64_t across = divide_up(p.n, t.cols);
  const std::int64_t i0 = tile / across * t.rows, j0 = tile % across * t.cols;
  Product q = p;
  q.m = std::min(t.rows, p.m - i0);
  q.n = std::min(t.cols, p.n - j0);
  // With `pre` the product goes there, and the activation from there to c.
  T* to = c + i0 * p.ldc + j0;
  T* out = e.pre ? e.pre + i0 * p.n + j0 : to;
  if (e.pre) q.ldc = p.n;
  const T* rows = a + (p.transpose_a ? i0 : i0 * p.lda);
  const T* columns = b + (p.transpose_b ? j0 * p.ldb : j0);
  const T* bias = e.bias ? e.bias + j0 : nullptr;
  if (prefers_blas(p)) {
    blas_product(q, alpha, rows, columns, beta, out);
    for (std::int64_t i = 0; bias && i < q.m; ++i) add_row(bias, q.n, out + i * q.ldc);
  } else {
    tile_product(q, alpha, rows, columns, beta, bias, out, alone, next);
  }
  if (e.activation) activate_rows(*e.activation, out, q.ldc, to, p.ldc, q.m, q.n);
}

// Note [Halves of a batch]. A layer's backward pass sums over the rows of a batch, and each half of
// these lies in the cache of the core that has computed it. So where a gradient is small beside
// them, each half is summed by itself, the second into memory of its own, and whoever comes last to
// a part of the result adds that. The first half of all chunks deals with the first rows: see
// Note [Helpers]. The second goes through the parts backwards, so that both threads, which meet
// in the middle, come last to half of them. (Where the cores share no cache a step of `deep` takes
// 5 % less; elsewhere the same.)
constexpr std::int64_t kLeastHalf = 128;           // rows
constexpr std::int64_t kLargestHalf = 128 * 1024;  // bytes
constexpr std::int64_t kHalfCols = 64;             // of a tile, which has half the depth

// What a chunk of 2 * count computes of a result of `count` pieces.
struct HalfPiece {
  int half;
  std::int64_t piece;
};
HalfPiece half_piece(std::int64_t chunk, std::int64_t count) {
  return chunk < count ? HalfPiece{0, chunk} : HalfPiece{1, 2 * count - 1 - chunk};
}

// The second half of a result, and who has come to its parts.
template <class T>
struct Halves {
  Ref<Storage> memory{};
  T* second = nullptr;
  std::atomic<int>* arrived = nullptr;

  void allocate(std::int64_t size, std::int64_t parts) {
    const std::int64_t bytes = round_up(size * static_cast<std::int64_t>(sizeof(T)), 64);
    memory = Storage::allocate(bytes + parts * static_cast<std::int64_t>(sizeof(std::atomic<int>)));
    second = reinterpret_cast<T*>(memory->data());
    arrived = reinterpret_cast<std::atomic<int>*>(memory->data() + bytes);
    for (std::int64_t i = 0; i < parts; ++i) new (arrived + i) std::atomic<int>(0);
  }
  explicit operator bool() const { return second != nullptr; }
  // True for the second caller.
  [[nodiscard]] bool last(std::int64_t part) const {
    return arrived[part].fetch_add(1, std::memory_order_acq_rel) == 1;
  }
};

// A batch of products cut into tiles, `grain` of them a chunk.
template <class T>
struct Tiles {
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
    const bool plain = !epilogue.bias && !epilogue.pre && !epilogue.activation && more.empty();
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
      T* const to = c + step_c.at(item);
      run_tile(p, tiling, tile, alpha, a + step_a.at(item), first, beta, to, epilogue, alone,
               more.empty() ? next_of(p, tile, first) : panel_of(p, tile, more[0].b));
      for (std::size_t k = 0; k < more.size(); ++k) {
        run_tile(p, tiling, tile, alpha, more[k].a, more[k].b, T(1), to, {}, alone,
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
    Product q = p;
    if (h == 0) {
      q.k = middle;
      run_tile<T>(q, tiling, tile, alpha, a, b, beta, c, {}, alone, next_of(q, tile, b));
    } else {
      q.k = p.k - middle;
      q.ldc = p.n;
      const T* const from = b + middle * p.ldb;
      run_tile<T>(q, tiling, tile, alpha, a + middle * p.lda, from, T(0), halves.second, {}, alone,
                  next_of(q, tile, from));
    }
    if (!halves.last(tile)) return;
    const std::int64_t across = divide_up(p.n, tiling.cols);
    const std::int64_t i0 = tile / across * tiling.rows, j0 = tile % across * tiling.cols;
    const std::int64_t cols = std::min(tiling.cols, p.n - j0);
    for (std::int64_t i = i0; i < std::min(p.m, i0 + tiling.rows); ++i) {
      add_row(halves.second + i * p.n + j0, cols, c + i * p.ldc + j0);
    }
  }
};

template <class T>
void run(std::int64_t batch, Tiles<T> tiles) {
  tiles.cut(batch);
  parallel_for(tiles.chunks(), 1, [&](std::int64_t chunk, std::int64_t) { tiles.run(chunk); });
}

// Rows of one partial sum of sum_rows.
constexpr std::int64_t kSumRows = 64;

// The columns of a matrix summed up, some of them a chunk, in halves where there are rows enough.
template <class T>
struct Sums {
  RowSumCall<T> call{};
  std::int64_t grain = 1;  // columns of a chunk: whole cache lines, at least 32k additions
  Halves<T> halves{};

  explicit Sums(const RowSumCall<T>& sum) : call(sum) {
    grain = round_up(std::max<std::int64_t>(64, 32768 / std::max<std::int64_t>(call.rows, 1)), 64);
    if (call.rows >= 2 * kLeastHalf) halves.allocate(call.cols, divide_up(call.cols, grain));
  }
  [[nodiscard]] std::int64_t chunks() const {
    return divide_up(call.cols, grain) * (halves ? 2 : 1);
  }
  [[nodiscard]] std::int64_t first_chunks() const { return divide_up(chunks(), 2); }

  void run(std::int64_t chunk) const {
    const auto [half, part] = half_piece(chunk, divide_up(call.cols, grain));
    const std::int64_t begin = part * grain, end = std::min(call.cols, begin + grain);
    if (!halves) return add(0, call.rows, begin, end, call.accumulate, call.y);
    const std::int64_t middle = round_up(call.rows / 2, kSumRows);
    if (half == 0) {
      add(0, middle, begin, end, call.accumulate, call.y);
    } else {
      add(middle, call.rows, begin, end, false, halves.second);
    }
    if (halves.last(part)) add_row(halves.second + begin, end - begin, call.y + begin);
  }

 private:
  // y (+)= the rows first..stop-1, columns begin..end-1.
  void add(std::int64_t first, std::int64_t stop, std::int64_t begin, std::int64_t end,
           bool accumulate, T* y) const {
    if (!accumulate) std::fill(y + begin, y + end, T(0));
    for (std::int64_t i = first; i < stop; i += kSumRows) {
      sum_block(call.x + i * call.cols + begin, std::min(kSumRows, stop - i), end - begin,
                call.cols, y + begin);
    }
  }
};

template <class T>
void run_sum_rows(const RowSumCall<T>& call) {
  const Sums<T> sums(call);
  parallel_for(sums.chunks(), 1, [&](std::int64_t chunk, std::int64_t) { sums.run(chunk); });
}

// The first half of the chunks of all, and then the second; see Note [Halves of a batch].
template <class T>
void run_group(std::span<const ProductCall<T>> products, std::span<const RowSumCall<T>> sums) {
  require(products.size() <= kMostInGroup && sums.size() <= kMostInGroup,
          "gemm_group: expected at most {} products and sums; got {} and {}", kMostInGroup,
          products.size(), sums.size());
  std::array<Tiles<T>, kMostInGroup> tiles;
  std::array<std::optional<Sums<T>>, kMostInGroup> columns;
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
  tile_product(with_leading_dimensions(sizes), alpha, a, b, beta, nullptr, c, true);
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
  run_sum_rows(RowSumCall<float>{x, rows, cols, accumulate, y});
}
void sum_rows(const double* x, std::int64_t rows, std::int64_t cols, bool accumulate, double* y) {
  run_sum_rows(RowSumCall<double>{x, rows, cols, accumulate, y});
}

}  // namespace norma::kernels
#endif  // HWY_ONCE
