#include "core/storage.h"

#include <sys/mman.h>

#include <array>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

#include "core/error.h"
#include "core/sanitizer.h"

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

// Note [Pages]. Memory comes from the system in spans that begin at a multiple of 2 MiB and ask for
// pages of that size: with pages of 4 KiB the look-up of addresses takes 3 to 4 % of a step of a
// deep network, and the first step some ten thousand page faults. Blocks below kLargeBlock are cut
// from spans and stay there; larger ones are spans of their own, and go back to the system.
constexpr std::int64_t kPage = 4096;
constexpr std::int64_t kHugePage = std::int64_t{1} << 21;
constexpr std::int64_t kSpan = std::int64_t{1} << 25;
constexpr std::int64_t kLargeBlock = std::int64_t{1} << 22;

std::int64_t round_up(std::int64_t n, std::int64_t step) { return (n + step - 1) / step * step; }

// Null where the system has no more.
std::byte* map_span(std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(round_up(bytes, kPage));
  void* p =
      ::mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  // What stands before the first multiple and behind the span goes back.
  auto* begin = static_cast<std::byte*>(p);
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  const std::size_t before = (kHugePage - address % kHugePage) % kHugePage;
  if (before > 0) ::munmap(begin, before);
  ::munmap(begin + before + size, kHugePage - before);
  begin += before;
#ifdef MADV_HUGEPAGE
  // Whole ones alone, so that the end of a span takes no more than it needs.
  const std::size_t whole = size / kHugePage * kHugePage;
  if (whole > 0) ::madvise(begin, whole, MADV_HUGEPAGE);
#endif
  return begin;
}

struct Pool {
  std::mutex mutex;
  std::array<std::vector<std::byte*>, kClasses> free;
  std::byte* rest = nullptr;  // of the last span
  std::int64_t rest_bytes = 0;
  MemoryStats stats;
};

// Never destroyed: storages with static lifetime may end after it.
Pool& pool() {
  static Pool* p = new Pool;
  return *p;
}

// A new block; null where the system has no more. The pool must be locked.
std::byte* from_system(Pool& p, std::int64_t bytes) {
  if (kAddressSanitizer) {
    return static_cast<std::byte*>(std::aligned_alloc(kAlignment, static_cast<std::size_t>(bytes)));
  }
  if (bytes >= kLargeBlock) return map_span(bytes);
  if (p.rest_bytes < bytes) {
    std::byte* span = map_span(kSpan);
    if (!span) return nullptr;
    p.rest = span;
    p.rest_bytes = kSpan;
  }
  std::byte* block = p.rest;
  p.rest += bytes;
  p.rest_bytes -= bytes;
  return block;
}

// Gives a free block's memory back. True iff the block is gone; else its pages are, and it stays in
// its list.
bool to_system(std::byte* block, std::int64_t bytes) {
  if (kAddressSanitizer) {
    std::free(block);
    return true;
  }
  if (bytes >= kLargeBlock) {
    ::munmap(block, static_cast<std::size_t>(round_up(bytes, kPage)));
    return true;
  }
  const auto begin = reinterpret_cast<std::uintptr_t>(block), end = begin + bytes;
  const std::uintptr_t first = (begin + kPage - 1) / kPage * kPage, last = end / kPage * kPage;
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
  return false;
}

std::int64_t bytes_of_class(int index) {
  if (index < kSmallClasses) return std::max<std::int64_t>(index, 1) * kAlignment;
  const int log = (index - kSmallClasses) / kSteps + 12, k = (index - kSmallClasses) % kSteps + 1;
  return (std::int64_t{1} << log) + k * ((std::int64_t{1} << log) / kSteps);
}

// The pool must be locked.
void release_free_blocks(Pool& p) {
  for (int index = 0; index < kClasses; ++index) {
    const std::int64_t bytes = bytes_of_class(index);
    std::erase_if(p.free[static_cast<std::size_t>(index)], [&](std::byte* block) {
      const bool gone = to_system(block, bytes);
      if (gone) p.stats.cached_bytes -= bytes;
      return gone;
    });
  }
}

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
      data = from_system(p, c.bytes);
      if (!data) {
        release_free_blocks(p);  // of other sizes
        data = from_system(p, c.bytes);
      }
      if (!data) {
        throw Error::format(
            "storage: the system has no {} bytes left ({} bytes live); use a smaller batch or "
            "model",
            c.bytes, p.stats.live_bytes);
      }
    }
    p.stats.live_bytes += c.bytes;
    ++p.stats.live_storages;
    p.stats.peak_bytes = std::max(p.stats.peak_bytes, p.stats.live_bytes);
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
    if (!kAddressSanitizer) {
      try {
        p.free[static_cast<std::size_t>(size_class(storage->bytes_).index)].push_back(
            storage->data_);
        p.stats.cached_bytes += storage->capacity_;
      } catch (const std::bad_alloc&) {
        // Memory is short, and an error on its way: the block is given up rather than the program.
        (void)to_system(storage->data_, storage->capacity_);
      }
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
  release_free_blocks(pool());
}

}  // namespace norma
