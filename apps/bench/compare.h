// Workloads in processes of their own, alone or beside another framework.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/bench/result.h"

namespace norma::bench {

struct Peer {
  std::string python;
  std::string script;    // takes --threads, --seconds, --only; prints a line of JSON
  bool compile = false;  // time its compiled model too
};

struct RunOptions {
  double seconds = 5;
  int rounds = 1;         // how often each is run; the best least time and the best median count
  int threads = 0;        // 0: as many as this process has
  bool products = false;  // time matrix products before and after each run
};

struct Comparison {
  Result own;
  std::optional<Result> peer{};
  std::optional<Result> compiled{};  // the peer's compiled model
  // GFLOP/s: the best median of matrix products before and after its runs; 0 where
  // RunOptions::products is false.
  double gemm_rate = 0;
  // Our median by the peer's: below 1 is faster.
  [[nodiscard]] double ratio() const { return own.ms_median / peer->ms_median; }
};

// Runs the workload in fresh processes, so that its peak memory is its own; with a peer the two
// take turns, so that a change in the machine's speed hits both.
[[nodiscard]] Comparison run_workload(const std::string& workload, const RunOptions& options,
                                      const std::optional<Peer>& peer);

// "held" or "missed".
[[nodiscard]] const char* verdict(bool held);

// A table for reading, with a mark at what is aimed at (see Target) where there is a peer.
// Share: FLOP/s of the median step by gemm_rate, which every row must have.
[[nodiscard]] std::string to_table(const std::vector<Comparison>& rows);

}  // namespace norma::bench
