// What attention's kernels share, whatever the instruction set: sizes, memory, random numbers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/kernels/attention.h"
#include "core/kernels/divide.h"
#include "core/kernels/dropout.h"

namespace norma::kernels {

// Note [Attention tiles]. A unit of work is one sample and one head of k and v, with all the heads
// of q that read it, so that dk and dv belong to one thread. Its keys are packed once: transposed
// (width x keys), so that the vectors of q k^T go across the keys, and by rows. Queries come in
// tiles of kQueries, keys in blocks of kKeys; a (kQueries x kKeys) tile of weights is all that
// exists at a time. Blocks that the causal mask or the window hides are skipped, and inside a tile
// the products skip what is hidden (Band). The backward pass computes the weights of a tile again.
//
// Note [Base two]. q is packed times scale / ln 2, so that softmax becomes 2^(s - max), one
// multiply less an element.
constexpr std::int64_t kQueries = 32;
constexpr std::int64_t kKeys = 256;
constexpr double kLn2 = 0.693147180559945309417;

template <class T>
struct AttentionTask {
  AttentionShape shape;
  AttentionInputs<T> in;
  const T* y = nullptr;
  T* y_out = nullptr;
  T* stats = nullptr;
  T* largest = nullptr;
  const T* dy = nullptr;  // null in the forward pass
  AttentionGradients<T> out;

  // Elements of one 64-byte line; everything packed is padded to it.
  static constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(T));
  [[nodiscard]] static std::int64_t padded(std::int64_t n) { return round_up(n, kLine); }
  [[nodiscard]] std::int64_t group() const { return shape.heads / shape.kv_heads; }
  // One line more than the keys: rows 1 kB apart would fall into few sets of the cache.
  [[nodiscard]] std::int64_t key_stride() const { return padded(shape.keys) + kLine; }
  [[nodiscard]] std::int64_t width() const { return padded(shape.width); }
  static constexpr std::int64_t kTileStride = kKeys + kLine;
  // The factor of q when it is packed.
  [[nodiscard]] double query_factor() const {
    return shape.softcap > 0 ? shape.scale / shape.softcap : shape.scale / kLn2;
  }
  // First and last + 1 key that query i may see.
  [[nodiscard]] std::int64_t first_key(std::int64_t i) const {
    const std::int64_t position = i + shape.keys - shape.queries;
    return shape.window > 0 ? std::max<std::int64_t>(0, position - shape.window + 1) : 0;
  }
  [[nodiscard]] std::int64_t end_key(std::int64_t i) const {
    const std::int64_t position = i + shape.keys - shape.queries;
    if (shape.causal) return std::min(shape.keys, position + 1);
    return shape.window > 0 ? std::min(shape.keys, position + shape.window) : shape.keys;
  }
};

// Memory of a unit, carved out of one block.
template <class T>
struct AttentionScratch {
  T *k_transposed, *v_transposed, *k, *v, *dk, *dv;  // (width x keys), (keys x width)
  T *q, *o, *dy;                                     // (kQueries x width); o is dq in backward
  T *weights, *dweights;                             // (kQueries x kKeys)
  T *mask, *keep;                                    // keys, kKeys
  T *max, *sum;                                      // kQueries

  AttentionScratch(const AttentionTask<T>& a, T* memory) {
    const std::int64_t across = a.shape.width * a.key_stride(), along = a.shape.keys * a.width();
    const std::int64_t tile = kQueries * a.width(), square = kQueries * a.kTileStride;
    const std::int64_t line = a.kLine;
    const auto take = [&](T*& p, std::int64_t n) {
      p = memory + size;
      size += round_up(n, line);
    };
    const bool backward = a.dy != nullptr;
    take(k_transposed, across);
    take(v, backward ? 0 : along);
    take(q, tile);
    take(o, tile);
    take(weights, square);
    take(mask, a.key_stride());
    take(keep, a.kTileStride);
    take(max, kQueries);
    take(sum, kQueries);
    take(v_transposed, backward ? across : 0);
    take(k, backward ? along : 0);
    take(dk, backward ? along : 0);
    take(dv, backward ? along : 0);
    take(dy, backward ? tile : 0);
    take(dweights, backward ? square : 0);
  }
  std::int64_t size = 0;
};

// factor[j - begin] for the keys begin .. end - 1 of one row of weights: at most kKeys of them,
// begin a multiple of 4 (numbers come in blocks of four). Up to 3 more factors are written.
template <class T>
void dropout_row(const AttentionShape& s, std::int64_t row, std::int64_t begin, std::int64_t end,
                 T* factor) {
  std::uint32_t words[kKeys + 4];
  const std::int64_t blocks_a_row = (s.keys + 3) / 4, count = (end - begin + 3) / 4;
  random_blocks(s.dropout_key, static_cast<std::uint64_t>(row * blocks_a_row + begin / 4), count,
                words);
  const double limit = s.dropout * 0x1p32;
  const T kept = static_cast<T>(1 / (1 - s.dropout));
  for (std::int64_t j = 0; j < 4 * count; ++j) {
    factor[j] = static_cast<double>(words[j]) < limit ? T{0} : kept;
  }
}

}  // namespace norma::kernels
