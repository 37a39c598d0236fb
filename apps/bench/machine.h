// What the machine can do, and times beside that.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/ref.h"
#include "core/storage.h"

namespace norma::bench {

// Multiplications and additions a second, in GFLOP/s, of f32 matrix products on all threads of
// this process: the median call of OpenBLAS (one independent product a thread) or of this program's
// own kernel, whichever is faster. Takes about `seconds`.
[[nodiscard]] double measure_gemm_rate(double seconds);

// How many operands of so many bytes fill four times the last cache: used in turns, each comes from
// memory.
[[nodiscard]] std::int64_t sets_past_cache(std::int64_t bytes);

// Plain copies on all threads, between blocks of 8 MiB that change from call to call (see
// sets_past_cache).
class Copies {
 public:
  static constexpr std::int64_t kBytes = std::int64_t{16} << 20;  // read and written by one
  Copies();
  void next();

 private:
  std::vector<Ref<Storage>> from_, to_;
  std::size_t at_ = 0;
};

struct Medians {
  double call = 0;    // seconds
  double beside = 0;  // of what ran in turns with it
};

// Calls f(0), f(1), ..., f(sets - 1), f(0), ... for `seconds`, and each at least twice; the median
// time of a call, without the first round. `between` runs before each, untimed. After each round
// `beside` runs as often, timed by itself: a machine that changes its pace changes it for both, and
// neither pays for what the other has left in the caches.
[[nodiscard]] Medians median_seconds(std::int64_t sets, double seconds,
                                     const std::function<void(std::int64_t)>& f,
                                     const std::function<void(std::int64_t)>& between = {},
                                     const std::function<void()>& beside = {});

// f(0), f(1), ..., f(n - 1) in turns, five times: the least that each gives. What else runs on the
// machine only adds to a time, and what slows it for a while hits all of them.
[[nodiscard]] std::vector<double> least_in_turns(std::size_t n,
                                                 const std::function<double(std::size_t)>& f);

}  // namespace norma::bench
