// The reference workloads: whole training steps, described by numbers alone, so that any framework
// can run the same work.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace norma::bench {

struct Workload {
  const char* name;
  const char* doc;
  std::string model;         // JSON, as the `model` of a configuration
  std::int64_t batch = 0;    // samples of a step
  std::int64_t context = 0;  // tokens of a sample; 0 where the input is an image
  std::int64_t vocab = 0;    // ids lie below it
  bool flat = false;         // the image comes as a row of 784 numbers
  bool clip = false;         // to a global norm of 1
  double flops = 0;          // of the matrix products of one step, forward and backward
};

inline constexpr std::int64_t kImageSide = 28;
inline constexpr std::int64_t kClasses = 10;

[[nodiscard]] std::span<const Workload> workloads();
// Throws Error naming the nearest known one.
[[nodiscard]] const Workload& find_workload(std::string_view name);

}  // namespace norma::bench
