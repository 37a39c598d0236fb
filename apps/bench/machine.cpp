#include "apps/bench/machine.h"

#include <cblas.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <vector>

#include "core/kernels/gemm.h"
#include "core/kernels/past_cache.h"
#include "core/parallel.h"

namespace norma::bench {
namespace {

using Clock = std::chrono::steady_clock;

// The side of the squares. One product takes a millisecond or two: long beside the start of the
// threads, and short enough to pass between two interruptions.
constexpr std::int64_t kSide = 512;
constexpr double kFlops = 2.0 * kSide * kSide * kSide;
constexpr int kTurns = 5;

template <class F>
double seconds_of(const F& f) {
  const auto start = Clock::now();
  f();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// GFLOP/s of the median call of f, which does `products` of them, within `seconds`.
template <class F>
double median_rate(double seconds, double products, F&& f) {
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  std::vector<double> calls;
  do {
    calls.push_back(seconds_of(f));
  } while (Clock::now() < end);
  return products * kFlops / median(calls) / 1e9;
}

}  // namespace

double measure_gemm_rate(double seconds) {
  const std::int64_t threads = num_threads();
  const auto size = static_cast<std::size_t>(kSide * kSide);
  std::vector<float> a(size, 0.5f), b(size, 0.25f);
  std::vector<std::vector<float>> c(static_cast<std::size_t>(threads), std::vector<float>(size));
  openblas_set_num_threads(1);
  const double blas = median_rate(seconds / 2, static_cast<double>(threads), [&] {
    parallel_for(threads, 1, [&](std::int64_t i, std::int64_t) {
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, kSide, kSide, kSide, 1, a.data(),
                  kSide, b.data(), kSide, 0, c[static_cast<std::size_t>(i)].data(), kSide);
    });
  });
  const double own = median_rate(seconds / 2, 1, [&] {
    kernels::gemm({.m = kSide, .n = kSide, .k = kSide}, 1.0f, a.data(), b.data(), 0.0f,
                  c[0].data());
  });
  return std::max(blas, own);
}

Medians median_seconds(std::int64_t sets, double seconds,
                       const std::function<void(std::int64_t)>& f,
                       const std::function<void(std::int64_t)>& between,
                       const std::function<void()>& beside) {
  std::vector<double> calls, others;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  for (int round = 0; round < 2 || Clock::now() < end; ++round) {
    for (std::int64_t i = 0; i < sets; ++i) {
      if (between) between(i);
      const double call = seconds_of([&] { f(i); });
      if (round > 0) calls.push_back(call);
    }
    for (std::int64_t i = 0; i < sets; ++i) {
      const double other = beside ? seconds_of(beside) : 0;
      if (round > 0) others.push_back(other);
    }
  }
  return {median(calls), median(others)};
}

std::vector<double> least_in_turns(std::size_t n, const std::function<double(std::size_t)>& f) {
  std::vector<double> least(n, std::numeric_limits<double>::infinity());
  for (int turn = 0; turn < kTurns; ++turn) {
    for (std::size_t i = 0; i < n; ++i) least[i] = std::min(least[i], f(i));
  }
  return least;
}

std::int64_t sets_past_cache(std::int64_t bytes) {
  return 4 * kernels::last_cache_bytes() / bytes + 1;
}

Copies::Copies() {
  constexpr std::int64_t kBlock = kBytes / 2;
  for (std::int64_t n = sets_past_cache(kBytes); n > 0; --n) {
    for (auto* blocks : {&from_, &to_}) {
      blocks->push_back(Storage::allocate(kBlock));
      std::memset(blocks->back()->data(), 1, kBlock);
    }
  }
}

void Copies::next() {
  constexpr std::int64_t kChunk = std::int64_t{1} << 18;
  const std::byte* x = from_[at_]->data();
  std::byte* y = to_[at_]->data();
  parallel_for(kBytes / 2, kChunk, [&](std::int64_t begin, std::int64_t stop) {
    std::memcpy(y + begin, x + begin, static_cast<std::size_t>(stop - begin));
  });
  at_ = (at_ + 1) % from_.size();
}

}  // namespace norma::bench
