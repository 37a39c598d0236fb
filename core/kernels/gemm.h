// Matrix products, row-major, for f32 and f64.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/kernels/activations.h"
#include "core/kernels/row_sums.h"

namespace norma::kernels {

// The sizes of C (m, n) = alpha op(A) op(B) + beta C, with op(A) (m, k) and op(B) (k, n).
// A is stored (m, k), or (k, m) if transpose_a; B is (k, n), or (n, k) if transpose_b. A leading
// dimension (elements from one stored row to the next) of 0 means that the matrix is dense.
struct Product {
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
};

// `rows` rows of `length` elements, `ld` apart.
template <class T>
struct MatrixRows {
  const T* data = nullptr;
  std::int64_t ld = 0, rows = 0, length = 0;
};

// What happens to a tile of the product while it is in cache: c = activation(c + bias) + residual.
template <class T>
struct Epilogue {
  const T* bias = nullptr;  // (n), added to every row
  T* pre = nullptr;         // (m, n) dense: keeps c + bias, for the backward pass; beta must be 0
  std::optional<Activation> activation;  // one that may be a gate
  const T* residual = nullptr;           // (m, n) dense, elsewhere than c
};

// C = alpha op(A) op(B) + beta C, then the epilogue. With beta 0 the old content of C is not read.
// Cut into tiles that depend on the sizes alone: the same bits at any number of threads.
void gemm(const Product& p, float alpha, const float* a, const float* b, float beta, float* c,
          const Epilogue<float>& epilogue = {});
void gemm(const Product& p, double alpha, const double* a, const double* b, double beta, double* c,
          const Epilogue<double>& epilogue = {});

template <class T>
struct Factors {
  const T* a = nullptr;
  const T* b = nullptr;
};
// c = op(a) op(b) + beta c + bias, and then c += op(a') op(b') for each of `more`, which have the
// same sizes; A is not transposed then. They must live until the call is done.
template <class T>
struct ProductCall {
  Product sizes;
  const T* a = nullptr;
  const T* b = nullptr;
  T beta = 0;
  T* c = nullptr;
  const T* bias = nullptr;  // (n), added to every row; may be null
  std::span<const Factors<T>> more = {};
};
// What a layer has several of, independent of each other, in one parallel loop: no result may
// overlap another or an operand. The same bits as gemm() and sum_rows(). At most kMostInGroup of
// each.
constexpr std::size_t kMostInGroup = 4;
void gemm_group(std::span<const ProductCall<float>> products,
                std::span<const RowSumCall<float>> sums);
void gemm_group(std::span<const ProductCall<double>> products,
                std::span<const RowSumCall<double>> sums);

// The same in one piece on the calling thread, for use inside a parallel loop.
void gemm_serial(const Product& p, float alpha, const float* a, const float* b, float beta,
                 float* c);
void gemm_serial(const Product& p, double alpha, const double* a, const double* b, double beta,
                 double* c);

// Where the matrices of a batch begin: element i at offsets[i], or at i * stride without offsets.
// A stride of 0 repeats one matrix.
struct BatchStep {
  std::int64_t stride = 0;
  const std::int64_t* offsets = nullptr;
  [[nodiscard]] std::int64_t at(std::int64_t i) const { return offsets ? offsets[i] : i * stride; }
};

// `batch` independent products. The matrices of C must not overlap.
void gemm_batched(std::int64_t batch, const Product& p, float alpha, const float* a,
                  BatchStep step_a, const float* b, BatchStep step_b, float beta, float* c,
                  BatchStep step_c);
void gemm_batched(std::int64_t batch, const Product& p, double alpha, const double* a,
                  BatchStep step_a, const double* b, BatchStep step_b, double beta, double* c,
                  BatchStep step_c);

}  // namespace norma::kernels
