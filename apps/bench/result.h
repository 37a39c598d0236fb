// What a benchmark of one workload gives, and how it travels: a line of JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace norma::bench {

// The keys of the JSON line are the members' names, the same as those of the peer script.
struct Result {
  std::string framework;
  std::string version;
  std::string workload;
  std::int64_t threads = 0;
  std::int64_t params = 0;
  double ms_min = 0;     // of one step
  double ms_median = 0;  // of one step
  std::int64_t steps = 0;
  double peak_rss_mib = 0;  // of the process
};

[[nodiscard]] std::string to_json_line(const Result& result);
// Throws Error, which names the missing key, if the line is no such result.
[[nodiscard]] Result from_json_line(std::string_view line);

}  // namespace norma::bench
