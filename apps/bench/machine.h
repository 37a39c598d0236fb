// What the machine can do.
#pragma once

namespace norma::bench {

// Multiplications and additions a second, in GFLOP/s, of f32 matrix products on all threads of
// this process: the best that OpenBLAS (one independent product a thread) or this program's own
// kernel reaches within about `seconds`.
[[nodiscard]] double measure_gemm_rate(double seconds);

}  // namespace norma::bench
