// What the machine can do.
#pragma once

#include <cstdint>
#include <functional>

namespace norma::bench {

// Multiplications and additions a second, in GFLOP/s, of f32 matrix products on all threads of
// this process: the best that OpenBLAS (one independent product a thread) or this program's own
// kernel reaches within about `seconds`.
[[nodiscard]] double measure_gemm_rate(double seconds);

// Bytes of the last level of cache, as the system tells it; 32 MiB where it does not.
[[nodiscard]] std::int64_t last_cache_bytes();

// Bytes read and written a second, in GB/s, of plain copies on all threads, between blocks of 8 MiB
// that change from call to call and together fill four times the last cache. The median.
[[nodiscard]] double measure_copy_rate(double seconds);

// Calls f(0), f(1), ..., f(sets - 1), f(0), ... for `seconds`, and each at least twice; the median
// time of a call in seconds, without the first round. `between` runs before each, untimed.
[[nodiscard]] double median_seconds(std::int64_t sets, double seconds,
                                    const std::function<void(std::int64_t)>& f,
                                    const std::function<void(std::int64_t)>& between = {});

}  // namespace norma::bench
