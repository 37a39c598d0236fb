#include "apps/bench/compare.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/bench/process.h"
#include "apps/bench/workloads.h"
#include "core/error.h"
#include "core/parallel.h"

namespace norma::bench {
namespace {

// The last line that a program prints is its result.
Result run_one(const std::vector<std::string>& arguments) {
  std::string output = run_process(arguments);
  while (!output.empty() && output.back() == '\n') output.pop_back();
  require(!output.empty(), "bench: {} printed nothing", arguments[0]);
  const std::size_t line = output.rfind('\n');
  return from_json_line(line == std::string::npos ? output : output.substr(line + 1));
}

void keep_best(std::optional<Result>& best, const Result& next) {
  if (!best) {
    best = next;
    return;
  }
  best->ms_min = std::min(best->ms_min, next.ms_min);
  best->ms_median = std::min(best->ms_median, next.ms_median);
  best->peak_rss_mib = std::max(best->peak_rss_mib, next.peak_rss_mib);
  best->steps += next.steps;
}

}  // namespace

Comparison run_workload(const std::string& workload, const RunOptions& options,
                        const std::optional<Peer>& peer) {
  const std::string threads = std::to_string(num_threads());
  const std::string seconds = fmt::format("{}", options.seconds);
  std::optional<Result> own, other;
  for (int round = 0; round < options.rounds; ++round) {
    keep_best(own, run_one({own_program(), "bench", workload, "--json", "--here", "--threads",
                            threads, "--seconds", seconds}));
    if (!peer) continue;
    std::vector<std::string> arguments = {peer->python, peer->script, "--threads", threads,
                                          "--seconds",  seconds,      "--only",    workload};
    if (peer->compile) arguments.push_back("--compile");
    keep_best(other, run_one(arguments));
    require(other->params == own->params,
            "bench: {} has {} parameters here and {} in {}; the work is not the same", workload,
            own->params, other->params, other->framework);
  }
  return {*own, other};
}

std::string to_table(const std::vector<Comparison>& rows, double gemm_rate) {
  const bool beside = !rows.empty() && rows.front().peer;
  std::string text = fmt::format("{:<11} {:>9} {:>9} {:>6} {:>8} {:>6}", "workload", "ms least",
                                 "median", "steps", "MiB", "share");
  if (beside)
    text += fmt::format("  | {:>9} {:>9} {:>8} | {:>6}", "ms least", "median", "MiB", "ratio");
  text += '\n';
  for (const Comparison& row : rows) {
    const double rate = find_workload(row.own.workload).flops / row.own.ms_median / 1e6;
    text += fmt::format("{:<11} {:>9.3f} {:>9.3f} {:>6} {:>8.0f} {:>5.0f}%", row.own.workload,
                        row.own.ms_min, row.own.ms_median, row.own.steps, row.own.peak_rss_mib,
                        100 * rate / gemm_rate);
    if (row.peer) {
      text += fmt::format("  | {:>9.3f} {:>9.3f} {:>8.0f} | {:>6.2f}", row.peer->ms_min,
                          row.peer->ms_median, row.peer->peak_rss_mib, row.ratio());
    }
    text += '\n';
  }
  text += fmt::format(
      "\nMilliseconds a step; threads: {}. Share: of the {:.0f} GFLOP/s that matrix products "
      "reach "
      "here.\n",
      num_threads(), gemm_rate);
  if (beside) {
    text += fmt::format("Ratio: the median by that of {} {}; below 1 is faster.\n",
                        rows.front().peer->framework, rows.front().peer->version);
  }
  return text;
}

}  // namespace norma::bench
