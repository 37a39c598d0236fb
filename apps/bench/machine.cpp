#include "apps/bench/machine.h"

#include <cblas.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "core/kernels/gemm.h"
#include "core/parallel.h"

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

}  // namespace norma::bench
