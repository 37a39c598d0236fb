// Reference-counted memory from a pool of size classes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/recycled.h"
#include "core/ref.h"

namespace norma {

// A block of memory, 64-byte aligned, with a version that counts in-place changes.
class Storage : public RefCounted<Storage>, public Recycled {
 public:
  // A block of at least `bytes` from the pool; its content is undefined.
  [[nodiscard]] static Ref<Storage> allocate(std::int64_t bytes);
  // A part of `parent` with a version of its own: parameters that share one flat buffer.
  [[nodiscard]] static Ref<Storage> carve(const Ref<Storage>& parent, std::int64_t offset_bytes,
                                          std::int64_t bytes);

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }
  // Counts in-place changes. A graph compares it with the version that it saved.
  [[nodiscard]] std::uint64_t version() const { return version_.load(std::memory_order_relaxed); }
  void bump_version() { version_.fetch_add(1, std::memory_order_relaxed); }

  static void destroy(Storage* storage);

 private:
  Storage() = default;
  ~Storage() = default;

  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
  std::int64_t capacity_ = 0;  // bytes of the block; 0 for a carved part
  std::atomic<std::uint64_t> version_{0};
  Ref<Storage> parent_;
};

struct MemoryStats {
  std::int64_t live_bytes = 0;          // in storages that exist now
  std::int64_t peak_bytes = 0;          // the most that was live since the last reset_peak()
  std::int64_t cached_bytes = 0;        // free, kept for the next storage of the same class
  std::int64_t system_allocations = 0;  // how often the system was asked for memory
  std::int64_t live_storages = 0;
};

[[nodiscard]] MemoryStats memory_stats();
void reset_peak_bytes();
// Returns the memory of the free blocks to the system. Small ones stay in their lists, and count as
// cached, without their pages.
void release_cached_memory();

}  // namespace norma
