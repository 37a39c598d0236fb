// Results that are written past the caches.
#pragma once

#include <cstdint>

namespace norma::kernels {

// Bytes of the last level of cache, as the system tells it; 32 MiB where it does not.
[[nodiscard]] std::int64_t last_cache_bytes();
// What it says from now on, for tests; 0: the truth.
void pretend_last_cache_bytes(std::int64_t bytes);

// Note [Past the cache]. A store to a line that no cache holds reads the line first: a third of
// what an op moves. Where its operands and results are more than the last cache keeps until someone
// reads them, the results go past it, and nothing is read. That begins at three quarters of the
// cache; for the norms and the softmax of a matrix, and their gradients, at a third: what reads it
// next is a product as a rule, which takes so much longer than its reading that memory is as good
// as the cache. (A chain of linear layer, BatchNorm and ReLU of 2048 x 768 takes the same; without
// the linear layer it takes 15 % longer. What reads an image next may be as short as that.) The
// bits are the same.
enum class NextReader { any, product };

// True iff an op that moves `bytes` should write its result past the cache, and can: the result
// begins at a whole line, and so does every `run` elements from there.
template <class T>
[[nodiscard]] bool past_cache(const T* result, std::int64_t run, std::int64_t bytes,
                              NextReader next = NextReader::any) {
  constexpr std::int64_t kLine = 64;
  const std::int64_t cache = last_cache_bytes();
  return bytes > (next == NextReader::product ? cache / 3 : cache / 4 * 3) &&
         reinterpret_cast<std::uintptr_t>(result) % kLine == 0 &&
         run * static_cast<std::int64_t>(sizeof(T)) % kLine == 0;
}

}  // namespace norma::kernels
