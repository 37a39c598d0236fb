// A result that is summed over a batch in two halves, for gradients of weights and biases.
#pragma once

#include <atomic>
#include <cstdint>
#include <new>

#include "core/kernels/divide.h"
#include "core/ref.h"
#include "core/storage.h"

namespace norma::kernels {

// Note [Halves of a batch]. A layer's backward pass sums over the rows of a batch, and each half of
// these lies in the cache of the core that has computed it. So where a gradient is small beside
// them, each half is summed by itself, the second into memory of its own, and whoever comes last to
// a part of the result adds that. The first half of all chunks deals with the first rows: see
// Note [Helpers]. The second goes through the parts backwards, so that both threads, which meet
// in the middle, come last to half of them. (Where the cores share no cache a step of `deep` takes
// 5 % less; elsewhere the same.)
inline constexpr std::int64_t kLeastHalf = 128;  // rows of one at least

// What a chunk of 2 * count computes of a result of `count` pieces.
struct HalfPiece {
  int half;
  std::int64_t piece;
};
inline HalfPiece half_piece(std::int64_t chunk, std::int64_t count) {
  return chunk < count ? HalfPiece{0, chunk} : HalfPiece{1, 2 * count - 1 - chunk};
}

// The second half of a result, and who has come to its parts. Empty where a result is summed as a
// whole.
template <class T>
struct Halves {
  Ref<Storage> memory{};
  T* second = nullptr;
  std::atomic<int>* arrived = nullptr;

  // For a result of `size` elements in so many parts.
  void allocate(std::int64_t size, std::int64_t parts) {
    const std::int64_t bytes = round_up(size * static_cast<std::int64_t>(sizeof(T)), 64);
    memory = Storage::allocate(bytes + parts * static_cast<std::int64_t>(sizeof(std::atomic<int>)));
    second = reinterpret_cast<T*>(memory->data());
    arrived = reinterpret_cast<std::atomic<int>*>(memory->data() + bytes);
    for (std::int64_t i = 0; i < parts; ++i) new (arrived + i) std::atomic<int>(0);
  }
  explicit operator bool() const { return second != nullptr; }
  // Called once for each half of a part, when that half is done; true for the second caller, who
  // sees both.
  [[nodiscard]] bool last(std::int64_t part) const {
    return arrived[part].fetch_add(1, std::memory_order_acq_rel) == 1;
  }
};

}  // namespace norma::kernels
