#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "apps/bench/compare.h"
#include "apps/bench/machine.h"
#include "apps/bench/measure.h"
#include "apps/bench/ops.h"
#include "apps/bench/scaling.h"
#include "apps/cli/verb.h"

namespace norma::cli {
namespace {

// Sections of the benchmark, beside the workloads.
constexpr const char* kOps = "ops";
constexpr const char* kScaling = "scaling";

struct BenchArguments {
  std::vector<std::string> names;
  std::vector<std::string> against;
  double seconds = 5;
  int rounds = 1;
  bool json = false;
  bool here = false;
  bool compile = false;
};

Status run(const BenchArguments& a) {
  std::vector<std::string> names = a.names;
  const auto section = [&](const char* name) {
    const bool named = std::erase(names, name) > 0;
    return named || (a.names.empty() && !a.against.empty() && !a.json);
  };
  std::vector<std::string> single;  // ops
  for (const std::string& op : bench::op_names()) {
    if (std::erase(names, fmt::format("{}:{}", kOps, op)) > 0) single.push_back(op);
  }
  const bool ops = section(kOps) || !single.empty(), scaling = section(kScaling);
  if (names.empty() && (a.names.empty() || scaling)) {
    for (const bench::Workload& w : bench::workloads()) names.push_back(w.name);
  }
  for (const std::string& name : names) {
    try {
      (void)bench::find_workload(name);
    } catch (const Error& e) {
      throw UsageError(e.what());
    }
  }
  if (a.here) {
    for (const std::string& name : names) {
      fmt::print("{}\n",
                 bench::to_json_line(bench::measure(bench::find_workload(name), a.seconds)));
      std::fflush(stdout);
    }
    return kDone;
  }

  std::optional<bench::Peer> peer;
  if (!a.against.empty()) peer = bench::Peer{a.against[0], a.against[1], a.compile};
  double rate = 0;  // the best of all moments, since the machine may be busy at one
  std::vector<bench::Comparison> rows;
  for (const std::string& name : names) {
    if (!a.json) {
      fmt::print(stderr, "{} ...\n", name);
      rate = std::max(rate, bench::measure_gemm_rate(0.5));
    }
    rows.push_back(bench::run_workload(name, {a.seconds, a.rounds}, peer));
    if (!a.json) continue;
    fmt::print("{}\n", bench::to_json_line(rows.back().own));
    if (rows.back().peer) fmt::print("{}\n", bench::to_json_line(*rows.back().peer));
    std::fflush(stdout);
  }
  if (a.json) return kDone;
  if (!rows.empty()) fmt::print("{}", bench::to_table(rows, rate));
  const double seconds = std::min(a.seconds, 2.0);
  const auto print = [](const char* what, auto&& table) {
    fmt::print(stderr, "{} ...\n", what);
    fmt::print("\n{}", table());
    std::fflush(stdout);
  };
  if (ops) print("ops", [&] { return bench::op_table(seconds / 4, single); });
  if (scaling) {
    print("threads", [&] { return bench::thread_table(rows, seconds); });
    print("growth", [&] { return bench::growth_table(seconds / 2); });
    print("runs", [&] { return bench::run_table(); });
  }
  return kDone;
}

}  // namespace

Action bench_verb(Options& options) {
  const auto a = std::make_shared<BenchArguments>();
  std::string known;
  for (const bench::Workload& w : bench::workloads()) {
    known += fmt::format("\n  {:<11} {}", w.name, w.doc);
  }
  known += fmt::format(
      "\n  {:<11} {}\n  {:<11} {}\n{}", kOps,
      "single ops beside the machine's copy, and RMSNorm beside LayerNorm", kScaling,
      "threads, depth, batch, 1,000 blocks, the first step",
      "(with --against-torch all of it; a transformer also as deep:layers=16,batch=4, one\n"
      "of the ops as ops:gelu)");
  options.add("WORKLOAD", a->names, "Which ones; all where none is given:" + known);
  options.add_flag("--json", a->json, "A line of JSON a workload");
  options.add("--seconds", a->seconds, "How long each is timed", {.low = 1e-9});
  options.add("--rounds", a->rounds, "How often each is run; the best counts",
              {.low = 1, .high = 100});
  options.add_flag("--here", a->here, "In this process, and not each in one of its own");
  options.add("--against-torch", a->against,
              "Run a peer's script in turns: the Python to use, and the script",
              {.value = "PYTHON SCRIPT", .count = 2});
  options.add_flag("--compile", a->compile, "Time the peer's compiled model too");
  return [a] { return run(*a); };
}

}  // namespace norma::cli
