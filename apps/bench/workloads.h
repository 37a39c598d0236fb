// The reference workloads: whole training steps, described by numbers alone, so that any framework
// can run the same work.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace norma::bench {

// What is aimed at. Beside them: peak memory of at most half of the peer's.
struct Target {
  double ratio = 0;       // at most, of the peer's time; 0: none
  double share = 0;       // at least, of the rate of matrix products; 0: none
  double memory_mib = 0;  // at most, in the place of half of the peer's
};

struct Workload {
  std::string name;
  std::string doc;
  std::string model;         // JSON, as the `model` of a configuration
  std::int64_t batch = 0;    // samples of a step
  std::int64_t context = 0;  // tokens of a sample; 0 where the input is an image
  std::int64_t vocab = 0;    // ids lie below it
  bool flat = false;         // the image comes as a row of 784 numbers
  bool clip = false;         // to a global norm of 1
  double flops = 0;          // of the matrix products of one step, forward and backward
  Target target{};
};

inline constexpr std::int64_t kImageSide = 28;
inline constexpr std::int64_t kClasses = 10;

[[nodiscard]] std::span<const Workload> workloads();
// A known one, or a variant of a transformer: "deep:layers=16,batch=4,norm=rms_norm". Throws Error
// naming the nearest known one.
[[nodiscard]] Workload find_workload(std::string_view name);
// The geometric mean of all ratios that is aimed at.
inline constexpr double kMeanRatio = 0.52;

}  // namespace norma::bench
