// Memory of the small objects that a step makes by the thousand: tensors' heads, nodes, edges.
//
// Note [Recycled]. A training step makes a graph of some thousand objects of a few sizes, and frees
// them all. The C library keeps only a few blocks a size at hand for a thread; beyond them it sorts
// and joins what was freed. Here every thread keeps free lists of its own, one a size, without a
// lock. What a thread leaves behind at its end goes to those that come later.
#pragma once

#include <cstddef>
#include <new>

namespace norma {

namespace detail {
[[nodiscard]] void* take_small(std::size_t bytes);
void give_small(void* block, std::size_t bytes);
}  // namespace detail

// Base of objects that come from the free lists.
struct Recycled {
  static void* operator new(std::size_t bytes) { return detail::take_small(bytes); }
  static void operator delete(void* block, std::size_t bytes) { detail::give_small(block, bytes); }
};

// The same for the containers that they hold.
template <class T>
struct RecyclingAllocator {
  using value_type = T;
  RecyclingAllocator() = default;
  template <class U>
  RecyclingAllocator(const RecyclingAllocator<U>&) {}
  [[nodiscard]] T* allocate(std::size_t n) {
    return static_cast<T*>(detail::take_small(n * sizeof(T)));
  }
  void deallocate(T* p, std::size_t n) { detail::give_small(p, n * sizeof(T)); }
  bool operator==(const RecyclingAllocator&) const { return true; }
};

}  // namespace norma
