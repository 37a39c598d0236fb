#include "core/parallel.h"

#include <atomic>
#include <exception>

#include "core/error.h"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace norma {
namespace {

int default_threads() {
#ifdef _OPENMP
  return std::max(1, omp_get_max_threads());
#else
  return 1;
#endif
}

std::atomic<int> g_threads{0};
thread_local bool t_in_parallel = false;

}  // namespace

int num_threads() {
  const int n = g_threads.load(std::memory_order_relaxed);
  if (n > 0) return n;
  g_threads.store(default_threads(), std::memory_order_relaxed);
  return g_threads.load(std::memory_order_relaxed);
}

void set_num_threads(int n) {
  require(n >= 1, "threads: expected at least 1; got {}", n);
  g_threads.store(n, std::memory_order_relaxed);
}

bool has_threads() {
#ifdef _OPENMP
  return true;
#else
  return false;
#endif
}

bool in_parallel() { return t_in_parallel; }

namespace detail {

void run_chunks(std::int64_t chunks, void (*body)(void*, std::int64_t), void* context) {
  std::exception_ptr error;
  std::atomic<bool> failed{false};
#ifdef _OPENMP
  // Note [More threads than cores]. They would wait for each other: a loop over small chunks then
  // takes several times as long. So no more run than there are cores; the chunks are the same.
  static const int cores = std::max(1, omp_get_num_procs());
  const int threads =
      static_cast<int>(std::min<std::int64_t>(std::min(num_threads(), cores), chunks));
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
    const bool outer = t_in_parallel;
    t_in_parallel = true;
#pragma omp for schedule(dynamic, 1)
    for (std::int64_t c = 0; c < chunks; ++c) {
      if (failed.load(std::memory_order_relaxed)) continue;
      try {
        body(context, c);
      } catch (...) {
        if (!failed.exchange(true)) error = std::current_exception();
      }
    }
    t_in_parallel = outer;
  }
#else
  for (std::int64_t c = 0; c < chunks; ++c) body(context, c);
#endif
  if (error) std::rethrow_exception(error);
}

}  // namespace detail
}  // namespace norma
