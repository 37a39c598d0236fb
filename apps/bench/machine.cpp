#include "apps/bench/machine.h"

#include <cblas.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "core/kernels/gemm.h"
#include "core/parallel.h"
#include "core/storage.h"

namespace norma::bench {
namespace {

using Clock = std::chrono::steady_clock;

// The side of the squares. One product takes a millisecond or two: long beside the start of the
// threads, and short enough to pass between two interruptions.
constexpr std::int64_t kSide = 512;
constexpr double kFlops = 2.0 * kSide * kSide * kSide;

// GFLOP/s of the fastest call of f, which does `products` of them, within `seconds`.
template <class F>
double best_rate(double seconds, double products, F&& f) {
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  double best = 0;
  do {
    const auto start = Clock::now();
    f();
    const std::chrono::duration<double> took = Clock::now() - start;
    best = std::max(best, products * kFlops / took.count() / 1e9);
  } while (Clock::now() < end);
  return best;
}

}  // namespace

double measure_gemm_rate(double seconds) {
  const std::int64_t threads = num_threads();
  const auto size = static_cast<std::size_t>(kSide * kSide);
  std::vector<float> a(size, 0.5f), b(size, 0.25f);
  std::vector<std::vector<float>> c(static_cast<std::size_t>(threads), std::vector<float>(size));
  openblas_set_num_threads(1);
  const double blas = best_rate(seconds / 2, static_cast<double>(threads), [&] {
    parallel_for(threads, 1, [&](std::int64_t i, std::int64_t) {
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, kSide, kSide, kSide, 1, a.data(),
                  kSide, b.data(), kSide, 0, c[static_cast<std::size_t>(i)].data(), kSide);
    });
  });
  const double own = best_rate(seconds / 2, 1, [&] {
    kernels::gemm({.m = kSide, .n = kSide, .k = kSide}, 1.0f, a.data(), b.data(), 0.0f,
                  c[0].data());
  });
  return std::max(blas, own);
}

std::int64_t last_cache_bytes() {
  for (const int level : {_SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE}) {
    if (const long bytes = ::sysconf(level); bytes > 0) return bytes;
  }
  return std::int64_t{32} << 20;
}

double median_seconds(std::int64_t sets, double seconds, const std::function<void(std::int64_t)>& f,
                      const std::function<void(std::int64_t)>& between) {
  std::vector<double> times;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  for (std::int64_t i = 0; i < 2 * sets || Clock::now() < end; ++i) {
    if (between) between(i % sets);
    const auto start = Clock::now();
    f(i % sets);
    const std::chrono::duration<double> took = Clock::now() - start;
    if (i >= sets) times.push_back(took.count());
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

double measure_copy_rate(double seconds) {
  constexpr std::int64_t kBlock = std::int64_t{8} << 20, kChunk = std::int64_t{1} << 18;
  const std::int64_t sets = 4 * last_cache_bytes() / (2 * kBlock) + 1;
  std::vector<Ref<Storage>> from, to;
  for (std::int64_t i = 0; i < sets; ++i) {
    for (auto* blocks : {&from, &to}) {
      blocks->push_back(Storage::allocate(kBlock));
      std::memset(blocks->back()->data(), 1, kBlock);
    }
  }
  const double took = median_seconds(sets, seconds, [&](std::int64_t i) {
    const std::byte* x = from[static_cast<std::size_t>(i)]->data();
    std::byte* y = to[static_cast<std::size_t>(i)]->data();
    parallel_for(kBlock, kChunk, [&](std::int64_t begin, std::int64_t stop) {
      std::memcpy(y + begin, x + begin, static_cast<std::size_t>(stop - begin));
    });
  });
  return 2.0 * static_cast<double>(kBlock) / took / 1e9;
}

}  // namespace norma::bench
