#include "core/kernels/past_cache.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <string>

namespace norma::kernels {
namespace {

// Of the first core, as Linux tells it, which counts what the core can reach: 0 where it does not.
std::int64_t largest_cache() {
  std::int64_t largest = 0;
  for (int i = 0; i < 8; ++i) {
    std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/size");
    std::int64_t size = 0;
    char unit = ' ';
    if (!(file >> size)) break;
    file >> unit;
    largest = std::max(largest, size << (unit == 'K' ? 10 : unit == 'M' ? 20 : 0));
  }
  return largest;
}

std::int64_t true_last_cache_bytes() {
  if (const std::int64_t size = largest_cache(); size > 0) return size;
  // The C library may count the caches of all cores.
  for (const int level : {_SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE}) {
    if (const long size = ::sysconf(level); size > 0) return std::int64_t{size};
  }
  return std::int64_t{32} << 20;
}

std::int64_t pretended = 0;

}  // namespace

std::int64_t last_cache_bytes() {
  static const std::int64_t bytes = true_last_cache_bytes();
  return pretended > 0 ? pretended : bytes;
}

void pretend_last_cache_bytes(std::int64_t bytes) { pretended = bytes; }

}  // namespace norma::kernels
