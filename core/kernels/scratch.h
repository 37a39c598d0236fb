// Memory of a thread for the insides of kernels: packed panels, unrolled images, the units of
// attention. Kept until the thread ends, so not for what grows without bound.
#pragma once

#include <cstdint>

namespace norma::kernels {

// Who uses the memory. A kernel that calls another one must not share a slot with it.
enum class Scratch { panel, rows, columns, transformed, product, weights, attention, count };

namespace detail {
[[nodiscard]] void* scratch_bytes(Scratch slot, std::int64_t bytes);
}

// At least `n` elements, 64-byte aligned, of the calling thread; undefined content. They stay valid
// until the thread asks for the slot again, and are kept until it ends.
template <class T>
[[nodiscard]] T* scratch(Scratch slot, std::int64_t n) {
  return static_cast<T*>(detail::scratch_bytes(slot, n * static_cast<std::int64_t>(sizeof(T))));
}

}  // namespace norma::kernels
