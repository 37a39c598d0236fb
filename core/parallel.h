// Parallel loops with results that do not depend on the number of threads.
//
// Note [Fixed chunks]. Work is cut by the size of the problem, never by the number of threads: a
// loop over n items runs as ceil(n / grain) chunks, and whatever a chunk sums is combined in the
// order of the chunks. (Where no sum goes beyond a chunk, the cut may be any.) So the same program
// gives the same bits with 1, 2 or 8 threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace norma {

// Threads that parallel_for uses; at least 1.
[[nodiscard]] int num_threads();
// Sets it for the whole process. Throws Error below 1. Above the cores: no more run at a time.
void set_num_threads(int n);
// True iff the program was built with OpenMP; without it every loop runs on the calling thread.
[[nodiscard]] bool has_threads();
// True iff the calling thread runs a chunk of a loop that several threads share: loops inside of it
// run on the calling thread. (A loop of one chunk, or on one thread, does not count: what is inside
// of it may still be shared out.)
[[nodiscard]] bool in_parallel();

namespace detail {
// Runs body(context, chunk) for every chunk in 0..chunks-1, on several threads.
void run_chunks(std::int64_t chunks, void (*body)(void* context, std::int64_t chunk),
                void* context);
}  // namespace detail

// A grain of at most `grain` that cuts n into an even number of chunks, or into one: two threads
// then share them equally, and meet in the middle. (Where no grain from half of it on does, as
// with 9 by 3, an odd number.)
[[nodiscard]] constexpr std::int64_t even_grain(std::int64_t n, std::int64_t grain) {
  if (n <= grain || grain < 1) return grain;
  const std::int64_t pairs = (n + 2 * grain - 1) / (2 * grain);
  const std::int64_t most = (n + 2 * pairs - 1) / (2 * pairs);
  for (std::int64_t g = most; 2 * g >= most; --g) {
    if ((n + g - 1) / g % 2 == 0) return g;
  }
  return most;
}

// Rows of `cols` elements that make a chunk of some `elements`, an even number of chunks.
[[nodiscard]] constexpr std::int64_t row_grain(std::int64_t rows, std::int64_t cols,
                                               std::int64_t elements) {
  return even_grain(rows, std::max<std::int64_t>(1, elements / std::max<std::int64_t>(1, cols)));
}

// Calls f(begin, end) for [0, grain), [grain, 2 grain), ... up to n. See Note [Fixed chunks].
// `grain` must depend on the problem alone. An exception thrown by f is rethrown to the caller.
template <class F>
void parallel_for(std::int64_t n, std::int64_t grain, F&& f) {
  if (n <= 0) return;
  if (grain < 1) grain = 1;
  const std::int64_t chunks = (n + grain - 1) / grain;
  if (chunks == 1 || num_threads() == 1 || in_parallel()) {
    for (std::int64_t b = 0; b < n; b += grain) f(b, std::min(n, b + grain));
    return;
  }
  struct Context {
    F& f;
    std::int64_t n, grain;
  } context{f, n, grain};
  detail::run_chunks(
      chunks,
      [](void* c, std::int64_t chunk) {
        auto& k = *static_cast<Context*>(c);
        k.f(chunk * k.grain, std::min(k.n, (chunk + 1) * k.grain));
      },
      &context);
}

// Sum over chunks of f(begin, end) -> T, combined in the order of the chunks.
template <class T, class F>
[[nodiscard]] T parallel_sum(std::int64_t n, std::int64_t grain, F&& f) {
  if (n <= 0) return T{};
  if (grain < 1) grain = 1;
  std::vector<T> partial(static_cast<std::size_t>((n + grain - 1) / grain));
  parallel_for(n, grain, [&](std::int64_t b, std::int64_t e) {
    partial[static_cast<std::size_t>(b / grain)] = f(b, e);
  });
  T sum{};
  for (const T& p : partial) sum += p;
  return sum;
}

}  // namespace norma
