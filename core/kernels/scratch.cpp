#include "core/kernels/scratch.h"

#include <array>
#include <cstdlib>
#include <memory>
#include <new>

namespace norma::kernels::detail {
namespace {

struct Free {
  void operator()(void* p) const { std::free(p); }
};

struct Block {
  std::unique_ptr<void, Free> memory;
  std::int64_t bytes = 0;
};

thread_local std::array<Block, static_cast<std::size_t>(Scratch::count)> t_blocks;

}  // namespace

void* scratch_bytes(Scratch slot, std::int64_t bytes) {
  Block& block = t_blocks[static_cast<std::size_t>(slot)];
  if (block.bytes < bytes) {
    // An eighth more, so that a need that grows a little each time does not allocate each time.
    const std::int64_t size = (bytes + bytes / 8 + 4095) / 4096 * 4096;
    block.memory.reset();
    block.bytes = 0;
    block.memory.reset(std::aligned_alloc(64, static_cast<std::size_t>(size)));
    if (!block.memory) throw std::bad_alloc();
    block.bytes = size;
  }
  return block.memory.get();
}

}  // namespace norma::kernels::detail
