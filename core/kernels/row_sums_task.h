// A sum over rows as chunks of a parallel loop, which it may share with products.
#pragma once

#include <cstdint>

#include "core/kernels/divide.h"
#include "core/kernels/gemm_halves.h"
#include "core/kernels/row_sums.h"

namespace norma::kernels {

// The columns of a matrix summed up, some of them a chunk, in halves where there are rows enough;
// see Note [Halves of a batch]. The memory of the call must live until all chunks have run.
template <class T>
struct RowSumTask {
  RowSumCall<T> call{};
  std::int64_t grain = 1;  // columns of a chunk
  Halves<T> halves{};

  explicit RowSumTask(const RowSumCall<T>& sum);

  [[nodiscard]] std::int64_t chunks() const {
    return divide_up(call.cols, grain) * (halves ? 2 : 1);
  }
  // How many of them come first.
  [[nodiscard]] std::int64_t first_chunks() const { return divide_up(chunks(), 2); }

  // Each chunk once, on any thread.
  void run(std::int64_t chunk) const;

 private:
  // y (+)= the rows first..stop-1, columns begin..end-1.
  void add(std::int64_t first, std::int64_t stop, std::int64_t begin, std::int64_t end,
           bool accumulate, T* y) const;
};

}  // namespace norma::kernels
