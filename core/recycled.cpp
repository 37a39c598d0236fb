#include "core/recycled.h"

#include <array>
#include <mutex>

#include "core/sanitizer.h"

namespace norma::detail {
namespace {

constexpr std::size_t kStep = 64;     // sizes of blocks are multiples of it
constexpr std::size_t kClasses = 24;  // larger ones come from the system
constexpr std::size_t kSlab = 64 * 1024;

struct Block {
  Block* next;
};
using Lists = std::array<Block*, kClasses>;

// What threads that ended have left. Never destroyed: a thread may end after it.
struct Orphans {
  std::mutex mutex;
  Lists lists{};
};
Orphans& orphans() {
  static Orphans* o = new Orphans;
  return *o;
}

// Plain data, so that it can be used while a thread's other objects are destroyed.
thread_local Lists t_lists{};

struct Heir {
  ~Heir() {
    Orphans& o = orphans();
    const std::lock_guard lock(o.mutex);
    for (std::size_t c = 0; c < kClasses; ++c) {
      while (Block* b = t_lists[c]) {
        t_lists[c] = b->next;
        b->next = o.lists[c];
        o.lists[c] = b;
      }
    }
  }
  void be_there() const {}
};
thread_local const Heir t_heir;

void* refill(std::size_t c) {
  t_heir.be_there();
  Orphans& o = orphans();
  {
    const std::lock_guard lock(o.mutex);
    std::swap(t_lists[c], o.lists[c]);
  }
  if (!t_lists[c]) {
    const std::size_t bytes = (c + 1) * kStep;
    auto* slab = static_cast<std::byte*>(::operator new(kSlab, std::align_val_t(kStep)));
    for (std::size_t at = 0; at + bytes <= kSlab; at += bytes) {
      t_lists[c] = new (slab + at) Block{t_lists[c]};
    }
  }
  Block* b = t_lists[c];
  t_lists[c] = b->next;
  return b;
}

}  // namespace

void* take_small(std::size_t bytes) {
  const std::size_t c = (bytes + kStep - 1) / kStep - 1;
  if (kAddressSanitizer || c >= kClasses) return ::operator new(bytes, std::align_val_t(kStep));
  Block* b = t_lists[c];
  if (!b) [[unlikely]]
    return refill(c);
  t_lists[c] = b->next;
  // The block after this one was last used a step ago: asked for now, it is here when it is taken.
  __builtin_prefetch(b->next, 1);
  return b;
}

void give_small(void* block, std::size_t bytes) {
  const std::size_t c = (bytes + kStep - 1) / kStep - 1;
  if (kAddressSanitizer || c >= kClasses) {
    ::operator delete(block, std::align_val_t(kStep));
    return;
  }
  // A thread may free without having taken any.
  if (!t_lists[c]) [[unlikely]]
    t_heir.be_there();
  t_lists[c] = new (block) Block{t_lists[c]};
}

}  // namespace norma::detail
