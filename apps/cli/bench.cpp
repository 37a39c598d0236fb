#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "apps/bench/compare.h"
#include "apps/bench/machine.h"
#include "apps/bench/measure.h"
#include "apps/cli/verb.h"

namespace norma::cli {
namespace {

struct Arguments {
  std::vector<std::string> names;
  std::vector<std::string> against;
  double seconds = 5;
  int rounds = 1;
  bool json = false;
  bool here = false;
  bool compile = false;
};

Status run(const Arguments& a) {
  std::vector<std::string> names = a.names;
  if (names.empty()) {
    for (const bench::Workload& w : bench::workloads()) names.emplace_back(w.name);
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
  if (!a.json) fmt::print("{}", bench::to_table(rows, rate));
  return kDone;
}

}  // namespace

Action bench_verb(Options& options) {
  const auto a = std::make_shared<Arguments>();
  std::string known;
  for (const bench::Workload& w : bench::workloads()) {
    known += fmt::format("\n  {:<11} {}", w.name, w.doc);
  }
  options.add("WORKLOAD", a->names, "Which ones; all where none is given:" + known);
  options.add_flag("--json", a->json, "A line of JSON a workload");
  options.add("--seconds", a->seconds, "How long each is timed", {.low = 1e-9});
  options.add("--rounds", a->rounds, "How often each is run; the best counts",
              {.low = 1, .high = 100});
  options.add_flag("--here", a->here, "In this process, and not each in one of its own");
  options.add("--against-torch", a->against,
              "Run a peer's script in turns: the Python to use, and the script",
              {.value = "PYTHON SCRIPT", .count = 2});
  options.add_flag("--compile", a->compile, "Let the peer compile its model");
  return [a] { return run(*a); };
}

}  // namespace norma::cli
