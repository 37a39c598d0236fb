#include "core/storage.h"

#include <array>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "core/error.h"

namespace norma {
namespace {

// Size classes: multiples of 64 bytes up to 4 KiB, then eight steps to every power of two, so that
// at most an eighth of a block is unused.
constexpr std::int64_t kAlignment = 64;
constexpr std::int64_t kSmall = 4096;
constexpr int kSmallClasses = kSmall / kAlignment + 1;
constexpr int kSteps = 8;
constexpr int kClasses = kSmallClasses + kSteps * 48;

struct SizeClass {
  int index;
  std::int64_t bytes;
};

SizeClass size_class(std::int64_t bytes) {
  if (bytes <= kSmall) {
    const std::int64_t k = (bytes + kAlignment - 1) / kAlignment;
    return {static_cast<int>(k), std::max<std::int64_t>(k, 1) * kAlignment};
  }
  const int log = 63 - std::countl_zero(static_cast<std::uint64_t>(bytes - 1));  // 2^log < bytes
  const std::int64_t base = std::int64_t{1} << log;
  const std::int64_t step = base / kSteps;
  const std::int64_t k = (bytes - base + step - 1) / step;  // 1..kSteps
  return {kSmallClasses + (log - 12) * kSteps + static_cast<int>(k) - 1, base + k * step};
}

std::byte* from_system(std::int64_t bytes) {
  return static_cast<std::byte*>(std::aligned_alloc(kAlignment, static_cast<std::size_t>(bytes)));
}

struct Pool {
  std::mutex mutex;
  std::array<std::vector<std::byte*>, kClasses> free;
  MemoryStats stats;
};

// Never destroyed: storages with static lifetime may end after it.
Pool& pool() {
  static Pool* p = new Pool;
  return *p;
}

// Under AddressSanitizer every block comes from the system, so that it is watched.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kPooled = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr bool kPooled = false;
#else
constexpr bool kPooled = true;
#endif
#else
constexpr bool kPooled = true;
#endif

}  // namespace

Ref<Storage> Storage::allocate(std::int64_t bytes) {
  require(bytes >= 0, "storage: expected at least 0 bytes; got {}", bytes);
  const SizeClass c = size_class(bytes);
  std::byte* data = nullptr;
  Pool& p = pool();
  {
    const std::lock_guard lock(p.mutex);
    auto& list = p.free[static_cast<std::size_t>(c.index)];
    if (!list.empty()) {
      data = list.back();
      list.pop_back();
      p.stats.cached_bytes -= c.bytes;
    } else {
      ++p.stats.system_allocations;
    }
    p.stats.live_bytes += c.bytes;
    ++p.stats.live_storages;
    p.stats.peak_bytes = std::max(p.stats.peak_bytes, p.stats.live_bytes);
  }
  if (!data) {
    data = from_system(c.bytes);
    if (!data) {
      release_cached_memory();  // free blocks of other sizes
      data = from_system(c.bytes);
    }
    if (!data) {
      const std::lock_guard lock(p.mutex);
      p.stats.live_bytes -= c.bytes;
      --p.stats.live_storages;
      throw Error::format(
          "storage: the system has no {} bytes left ({} bytes live); use a smaller batch or model",
          c.bytes, p.stats.live_bytes);
    }
  }
  Ref<Storage> storage(new Storage);
  storage->data_ = data;
  storage->bytes_ = bytes;
  storage->capacity_ = c.bytes;
  return storage;
}

Ref<Storage> Storage::carve(const Ref<Storage>& parent, std::int64_t offset_bytes,
                            std::int64_t bytes) {
  require(offset_bytes >= 0 && bytes >= 0 && offset_bytes + bytes <= parent->bytes(),
          "storage: bytes {} to {} do not lie within {}", offset_bytes, offset_bytes + bytes,
          parent->bytes());
  Ref<Storage> storage(new Storage);
  storage->data_ = parent->data_ + offset_bytes;
  storage->bytes_ = bytes;
  storage->parent_ = parent;
  return storage;
}

void Storage::destroy(Storage* storage) {
  if (storage->capacity_ > 0) {
    Pool& p = pool();
    const std::lock_guard lock(p.mutex);
    p.stats.live_bytes -= storage->capacity_;
    --p.stats.live_storages;
    if (kPooled) {
      p.free[static_cast<std::size_t>(size_class(storage->bytes_).index)].push_back(storage->data_);
      p.stats.cached_bytes += storage->capacity_;
    } else {
      std::free(storage->data_);
    }
  }
  delete storage;
}

MemoryStats memory_stats() {
  const std::lock_guard lock(pool().mutex);
  return pool().stats;
}

void reset_peak_bytes() {
  const std::lock_guard lock(pool().mutex);
  pool().stats.peak_bytes = pool().stats.live_bytes;
}

void release_cached_memory() {
  const std::lock_guard lock(pool().mutex);
  for (auto& list : pool().free) {
    for (std::byte* block : list) std::free(block);
    list.clear();
  }
  pool().stats.cached_bytes = 0;
}

}  // namespace norma
