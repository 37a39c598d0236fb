#include "apps/bench/compare.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "apps/bench/machine.h"
#include "apps/bench/process.h"
#include "apps/bench/workloads.h"
#include "core/error.h"
#include "core/parallel.h"

namespace norma::bench {
namespace {

constexpr double kProductSeconds = 0.3;  // of matrix products, before and after a run

// The last line that a program prints is its result.
Result run_one(const std::vector<std::string>& arguments) {
  std::string output = run_process(arguments);
  while (!output.empty() && output.back() == '\n') output.pop_back();
  require(!output.empty(), "bench: {} printed nothing", arguments[0]);
  const std::size_t line = output.rfind('\n');
  return from_json_line(line == std::string::npos ? output : output.substr(line + 1));
}

// The same of the peer's script, whose author may not know what is expected of it.
Result run_peer(const std::vector<std::string>& arguments) {
  try {
    return run_one(arguments);
  } catch (const Error& e) {
    throw Error::format(
        "{}\nThe peer was: {}\n--against-torch takes the Python to use and a script; the last line "
        "of that is a result as `norma bench WORKLOAD --json` prints it.",
        e.what(), fmt::join(arguments, " "));
  }
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
  const std::string threads = std::to_string(options.threads > 0 ? options.threads : num_threads());
  const std::string seconds = fmt::format("{}", options.seconds);
  std::optional<Result> own, other, compiled;
  double rate = 0;
  for (int round = 0; round < options.rounds; ++round) {
    const auto time_products = [&] {
      if (options.products) rate = std::max(rate, measure_gemm_rate(kProductSeconds));
    };
    time_products();
    keep_best(own, run_one({own_program(), "bench", workload, "--json", "--here", "--threads",
                            threads, "--seconds", seconds}));
    time_products();
    if (!peer) continue;
    std::vector<std::string> arguments = {peer->python, peer->script, "--threads", threads,
                                          "--seconds",  seconds,      "--only",    workload};
    keep_best(other, run_peer(arguments));
    require(other->params == own->params,
            "bench: {} has {} parameters here and {} in {}; the work is not the same", workload,
            own->params, other->params, other->framework);
    if (!peer->compile) continue;
    arguments.push_back("--compile");
    try {
      keep_best(compiled, run_one(arguments));
    } catch (const Error& e) {
      fmt::print(stderr, "{}: not compiled: {}\n", workload, e.what());
    }
  }
  return {*own, other, compiled, rate};
}

const char* verdict(bool held) { return held ? "held" : "missed"; }

namespace {

// The targets of a row, each with its verdict.
std::string marks(const Comparison& row, const Target& target, double share) {
  std::string text;
  const auto mark = [&](const char* what, const std::string& limit, bool held) {
    text += fmt::format("{}{} {} {}", text.empty() ? "" : ", ", what, limit, verdict(held));
  };
  if (target.ratio > 0) {
    mark("time <=", fmt::format("{:.2f}", target.ratio), row.ratio() <= target.ratio);
  }
  if (target.share > 0) {
    mark("share >=", fmt::format("{:.0f}%", 100 * target.share), share >= target.share);
  }
  const double most = target.memory_mib > 0 ? target.memory_mib : row.peer->peak_rss_mib / 2;
  mark("MiB <=", fmt::format("{:.0f}", most), row.own.peak_rss_mib <= most);
  return text;
}

}  // namespace

std::string to_table(const std::vector<Comparison>& rows) {
  const bool beside = !rows.empty() && rows.front().peer;
  const bool compiled = std::any_of(rows.begin(), rows.end(),
                                    [](const Comparison& row) { return row.compiled.has_value(); });
  std::string text = fmt::format("{:<11} {:>9} {:>9} {:>6} {:>8} {:>6}", "workload", "ms least",
                                 "median", "steps", "MiB", "share");
  if (beside) text += fmt::format("  | {:>9} {:>9} {:>8}", "ms least", "median", "MiB");
  if (compiled) text += fmt::format(" {:>9}", "compiled");
  if (beside) text += fmt::format(" | {:>6}  {}", "ratio", "aims");
  text += '\n';
  double logs = 0, slowest = std::numeric_limits<double>::infinity(), fastest = 0;
  for (const Comparison& row : rows) {
    const Workload workload = find_workload(row.own.workload);
    const double share = workload.flops / row.own.ms_median / 1e6 / row.gemm_rate;
    slowest = std::min(slowest, row.gemm_rate);
    fastest = std::max(fastest, row.gemm_rate);
    text += fmt::format("{:<11} {:>9.3f} {:>9.3f} {:>6} {:>8.0f} {:>5.0f}%", row.own.workload,
                        row.own.ms_min, row.own.ms_median, row.own.steps, row.own.peak_rss_mib,
                        100 * share);
    if (row.peer) {
      text += fmt::format("  | {:>9.3f} {:>9.3f} {:>8.0f}", row.peer->ms_min, row.peer->ms_median,
                          row.peer->peak_rss_mib);
      if (compiled) {
        text += row.compiled ? fmt::format(" {:>9.3f}", row.compiled->ms_median)
                             : fmt::format(" {:>9}", "-");
      }
      text += fmt::format(" | {:>6.2f}  {}", row.ratio(), marks(row, workload.target, share));
      logs += std::log(row.ratio());
    }
    text += '\n';
  }
  if (beside) {
    const double mean = std::exp(logs / static_cast<double>(rows.size()));
    text += fmt::format("geometric mean of the ratios: {:.2f}", mean);
    if (rows.size() == workloads().size()) {
      text += fmt::format(" (<= {:.2f} {})", kMeanRatio, verdict(mean <= kMeanRatio));
    }
    text += '\n';
  }
  text += fmt::format(
      "\nMilliseconds a step; threads: {}. Share: FLOP/s of the median step, of those of matrix "
      "products before and after it ({:.0f} to {:.0f} GFLOP/s).\n",
      num_threads(), slowest, fastest);
  if (beside) {
    text += fmt::format("Ratio: the median by that of {} {}; below 1 is faster.\n",
                        rows.front().peer->framework, rows.front().peer->version);
  }
  return text;
}

}  // namespace norma::bench
