// Large products through OpenBLAS, one thread a call.
#pragma once

#include "core/kernels/gemm.h"

namespace norma::kernels {

// True iff OpenBLAS computes a tile of this product faster than the panels of gemm_tile-inl.h:
// where all three sizes are large, its second level of blocking counts, and its packing no longer
// shows.
[[nodiscard]] bool prefers_blas(const Product& p);

// C = alpha op(A) op(B) + beta C on the calling thread. The leading dimensions must be given.
void blas_product(const Product& p, float alpha, const float* a, const float* b, float beta,
                  float* c);
void blas_product(const Product& p, double alpha, const double* a, const double* b, double beta,
                  double* c);

}  // namespace norma::kernels
