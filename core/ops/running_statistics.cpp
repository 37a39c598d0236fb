#include "core/ops/running_statistics.h"

#include "core/recompute.h"

namespace norma {

RunningStatistics make_running_statistics(std::int64_t channels, DType dtype) {
  return {Tensor::zeros({channels}, dtype), Tensor::ones({channels}, dtype),
          Tensor::zeros({}, DType::i64)};
}

void check_running_statistics(const char* op, const RunningStatistics& stats, std::int64_t channels,
                              DType dtype) {
  const Shape expected{channels};
  const auto check = [&](const char* name, const Tensor& t) {
    require(t.defined() && t.shape() == expected && t.dtype() == dtype,
            "{}: {} must have shape {} and type {}; got {} and {}", op, name, expected,
            name_of(dtype), t, t.defined() ? name_of(t.dtype()) : "none");
  };
  check("running_mean", stats.mean);
  check("running_var", stats.var);
  require(
      stats.batches.defined() && stats.batches.numel() == 1 && stats.batches.dtype() == DType::i64,
      "{}: num_batches_tracked must be one element of i64", op);
}

std::int64_t count_batch(RunningStatistics& stats) {
  if (recomputing()) return *stats.batches.data<std::int64_t>();
  return ++*stats.batches.mutable_data<std::int64_t>();
}

void update_running_statistics(RunningStatistics& stats, const Tensor& mean, const Tensor& var,
                               double weight) {
  if (recomputing()) return;
  dispatch_compute(mean.dtype(), "running statistics", [&]<class T>() {
    const auto mix = [&](Tensor& running, const Tensor& batch) {
      T* r = running.mutable_data<T>();
      const T* b = batch.data<T>();
      for (std::int64_t c = 0; c < batch.numel(); ++c) {
        r[c] = static_cast<T>((1 - weight) * static_cast<double>(r[c]) +
                              weight * static_cast<double>(b[c]));
      }
    };
    mix(stats.mean, mean);
    mix(stats.var, var);
  });
}

}  // namespace norma
