#include <fmt/ranges.h>

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

// Options that say nothing where others stand, so that nobody takes the output for what they ask.
void check_together(const BenchArguments& a, bool tables) {
  if (a.compile && a.against.empty()) {
    throw UsageError("--compile: there is no peer; give --against-torch PYTHON SCRIPT too");
  }
  if (a.here && !a.against.empty()) {
    throw UsageError("--here: nothing runs beside it; leave out --here, or --against-torch");
  }
  if (tables && (a.json || a.here)) {
    throw UsageError(fmt::format("{}: {} and {} print tables and run on their own; leave it out",
                                 a.json ? "--json" : "--here", kOps, kScaling));
  }
}

// What is asked for.
struct Sections {
  std::vector<std::string> workloads;
  std::vector<std::string> single_ops;
  bool ops = false, scaling = false;
};

Sections sections_of(const BenchArguments& a) {
  Sections s;
  s.workloads = a.names;
  const auto section = [&](const char* name) {
    const bool named = std::erase(s.workloads, name) > 0;
    return named || (a.names.empty() && !a.against.empty() && !a.json);
  };
  for (const std::string& op : bench::op_names()) {
    if (std::erase(s.workloads, fmt::format("{}:{}", kOps, op)) > 0) s.single_ops.push_back(op);
  }
  s.ops = section(kOps) || !s.single_ops.empty();
  s.scaling = section(kScaling);
  if (s.workloads.empty() && (a.names.empty() || s.scaling)) {
    for (const bench::Workload& w : bench::workloads()) s.workloads.push_back(w.name);
  }
  for (const std::string& name : s.workloads) {
    if (name.starts_with(fmt::format("{}:", kOps))) {
      throw UsageError(fmt::format("unknown op \"{}\"; known: {}:{}", name, kOps,
                                   fmt::join(bench::op_names(), fmt::format(", {}:", kOps))));
    }
    try {
      (void)bench::find_workload(name);
    } catch (const Error& e) {
      throw UsageError(e.what());
    }
  }
  check_together(a, s.ops || s.scaling);
  return s;
}

void print_now(const std::string& text) {
  fmt::print("{}", text);
  std::fflush(stdout);
}

// Each in this process.
void run_here(const std::vector<std::string>& workloads, double seconds) {
  for (const std::string& name : workloads) {
    print_now(bench::to_json_line(bench::measure(bench::find_workload(name), seconds)) + "\n");
  }
}

// Each in a process of its own: prints lines of JSON, or a table.
std::vector<bench::Comparison> run_workloads(const std::vector<std::string>& workloads,
                                             const BenchArguments& a) {
  std::optional<bench::Peer> peer;
  if (!a.against.empty()) peer = bench::Peer{a.against[0], a.against[1], a.compile};
  std::vector<bench::Comparison> rows;
  for (const std::string& name : workloads) {
    if (!a.json) fmt::print(stderr, "{} ...\n", name);
    rows.push_back(bench::run_workload(
        name, {.seconds = a.seconds, .rounds = a.rounds, .products = !a.json}, peer));
    if (!a.json) continue;
    print_now(bench::to_json_line(rows.back().own) + "\n");
    if (rows.back().peer) print_now(bench::to_json_line(*rows.back().peer) + "\n");
  }
  if (!a.json && !rows.empty()) print_now(bench::to_table(rows));
  return rows;
}

Status run(const BenchArguments& a) {
  const Sections s = sections_of(a);
  if (a.here) {
    run_here(s.workloads, a.seconds);
    return kDone;
  }
  const std::vector<bench::Comparison> rows = run_workloads(s.workloads, a);
  if (a.json) return kDone;
  const double seconds = std::min(a.seconds, 2.0);
  const auto print = [](const char* what, auto&& table) {
    fmt::print(stderr, "{} ...\n", what);
    print_now("\n" + table());
  };
  if (s.ops) print("ops", [&] { return bench::op_table(seconds / 4, s.single_ops); });
  if (s.scaling) {
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
      "\nof a transformer also sizes, as deep:layers=16,batch=4; and by name, or with\n"
      "--against-torch and nothing named:\n  {:<11} {}\n  {:<11} {}\n  {:<11} {}",
      kOps, "single ops beside the machine's copy, and RMSNorm beside LayerNorm",
      fmt::format("{}:OP", kOps), fmt::format("one of {}", fmt::join(bench::op_names(), ", ")),
      kScaling, "threads, depth, batch, 1,000 blocks, the first step");
  options.add("WORKLOAD", a->names,
              "What to time; the training steps where none is named:" + known);
  options.add_flag("--json", a->json, "A line of JSON a workload");
  options.add("--seconds", a->seconds, "How long each is timed (default: 5)", {.low = 1e-9});
  options.add("--rounds", a->rounds, "How often each is run; the best counts (default: 1)",
              {.low = 1, .high = 100});
  options.add_flag("--here", a->here, "In this process, and not each in one of its own");
  options.add("--against-torch", a->against,
              "Run a peer's script in turns: the Python to use, and the script, which\n"
              "prints a line of JSON a workload as --json does",
              {.value = "PYTHON SCRIPT", .count = 2});
  options.add_flag("--compile", a->compile, "Time the peer's compiled model too");
  return [a] { return run(*a); };
}

}  // namespace norma::cli
