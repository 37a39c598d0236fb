#include "apps/bench/scaling.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "apps/bench/machine.h"
#include "apps/bench/process.h"
#include "apps/bench/workloads.h"
#include "core/error.h"
#include "core/parallel.h"

namespace norma::bench {
namespace {

namespace fs = std::filesystem;

constexpr double kLeastMs = 5;
constexpr double kGain = 0.92;  // of what matrix products gain
constexpr double kMostLoss = 1.1;
constexpr double kOffLine = 0.1;
constexpr double kFirstStep = 0.2;

double step_ms(const std::string& workload, double seconds, int threads = 0) {
  return run_workload(workload, {.seconds = seconds, .rounds = 1, .threads = threads}, std::nullopt)
      .own.ms_median;
}

std::string growth(const char* workload, const char* key, std::vector<int> sizes, double seconds) {
  const std::vector<double> ms = least_in_turns(sizes.size(), [&](std::size_t i) {
    return step_ms(fmt::format("{}:{}={}", workload, key, sizes[i]), seconds);
  });
  std::string cells;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    cells += fmt::format(" {:>4}: {:>8.3f}", sizes[i], ms[i]);
  }
  const double slope = (ms.back() - ms.front()) / (sizes.back() - sizes.front());
  double off = 0;
  for (std::size_t i = 0; i < ms.size(); ++i) {
    off = std::max(off, std::abs(ms[i] / (ms.front() + slope * (sizes[i] - sizes.front())) - 1));
  }
  return fmt::format("{:<9} {:<7}{}   off the line {:.1f}% {}\n", workload, key, cells, 100 * off,
                     verdict(off <= kOffLine));
}

struct TrainingRun {
  double seconds = 0;  // from the call to the end of the process
  std::vector<double> losses;
};

// Trains in a process and a folder of their own.
TrainingRun train(const nlohmann::json& config) {
  const fs::path folder = fs::temp_directory_path() / fmt::format("norma-bench-{}", ::getpid());
  fs::create_directories(folder);
  const std::string file = (folder / "config.json").string(), out = (folder / "run").string();
  std::ofstream(file) << config;
  const auto start = std::chrono::steady_clock::now();
  (void)run_process({own_program(), "train", file, "--quiet", "--out", out, "--threads",
                     std::to_string(num_threads())});
  TrainingRun run;
  run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::ifstream metrics(out + "/metrics.jsonl");
  for (std::string line; std::getline(metrics, line);) {
    const auto entry = nlohmann::json::parse(line);
    if (entry.at("kind") == "train") run.losses.push_back(entry.at("loss"));
  }
  fs::remove_all(folder);
  require(!run.losses.empty(), "bench: the run wrote no losses");
  return run;
}

nlohmann::json transformer(int layers, int width, int heads, int hidden, const char* placement) {
  return {{"type", "transformer"}, {"layers", layers},       {"width", width},
          {"heads", heads},        {"hidden", hidden},       {"activation", "swiglu"},
          {"norm", "rms_norm"},    {"placement", placement}, {"position", "rope"},
          {"bias", false},         {"tied", false}};
}

nlohmann::json shift_run(nlohmann::json model, int vocab, int length, int batch, int steps,
                         double rate) {
  return {
      {"data", {{"type", "shift"}, {"vocab", vocab}, {"length", length}}},
      {"model", std::move(model)},
      {"optimizer", {{"type", "adamw"}, {"lr", rate}}},
      {"train",
       {{"steps", steps}, {"batch", batch}, {"log_every", 1}, {"eval_batches", 1}, {"keep", 0}}}};
}

// What a workload takes at one thread, at as many as this process has, at twice and at four times
// as many; then what matrix products take at the first two.
std::vector<double> times_at_threads(const std::string& workload, double seconds) {
  const int threads = num_threads();
  return least_in_turns(6, [&](std::size_t i) {
    if (i < 4) return step_ms(workload, seconds, i == 0 ? 1 : threads << (i - 1));
    set_num_threads(i == 4 ? 1 : threads);
    const double rate = measure_gemm_rate(0.2);
    set_num_threads(threads);
    return 1 / rate;
  });
}

}  // namespace

std::string thread_table(std::span<const Comparison> rows, double seconds) {
  const int threads = num_threads();
  if (threads < 2) return "threads: only one; nothing to compare\n";
  const auto heading = [&](int factor) { return fmt::format("{} threads", factor * threads); };
  std::string text =
      fmt::format("{:<11} {:>10} {:>10} {:>6} {:>10} {:>7}          {:>10} {:>10}\n", "workload",
                  "1 thread", heading(1), "gain", "products'", "share", heading(2), heading(4));
  for (const Comparison& row : rows) {
    if (row.own.ms_median <= kLeastMs) continue;
    const std::vector<double> t = times_at_threads(row.own.workload, seconds);
    const double gain = t[0] / t[1], products = t[4] / t[5];
    text += fmt::format(
        "{:<11} {:>10.3f} {:>10.3f} {:>6.2f} {:>10.2f} {:>7.2f} {:<7}  {:>10.3f} "
        "{:>10.3f} {}\n",
        row.own.workload, t[0], t[1], gain, products, gain / products,
        verdict(gain / products >= kGain), t[2], t[3],
        verdict(std::max(t[2], t[3]) <= kMostLoss * t[1]));
  }
  return text + fmt::format(
                    "Milliseconds a step. Share: the gain by that of matrix products, >= "
                    "{:.2f}; more threads than cores: <= {:.0f}% slower.\n",
                    kGain, 100 * (kMostLoss - 1));
}

std::string growth_table(double seconds) {
  return growth("deep", "layers", {16, 32, 64, 128}, seconds) +
         growth("gpt-nano", "layers", {2, 4, 8, 16}, seconds) +
         growth("deep", "batch", {4, 8, 16, 32}, seconds) +
         growth("gpt-nano", "batch", {6, 12, 24, 48}, seconds) +
         fmt::format("Milliseconds a step at four sizes; <= {:.0f}%.\n", 100 * kOffLine);
}

std::string run_table() {
  const TrainingRun deep =
      train(shift_run(transformer(1000, 32, 2, 64, "deepnorm"), 16, 8, 16, 20, 1e-3));
  const double last = deep.losses.back();
  std::string text = fmt::format(
      "1,000 blocks, DeepNorm: 20 steps in {:.1f} s, loss {:.3f} -> {:.3f} {}\n", deep.seconds,
      deep.losses.front(), last, verdict(std::isfinite(last) && last < deep.losses.front()));
  auto model = transformer(24, 128, 8, 344, "post");
  model["kv_heads"] = 2;
  model["final_norm"] = true;
  const double least = least_in_turns(
      1, [&](std::size_t) { return train(shift_run(model, 64, 24, 8, 1, 2e-3)).seconds; })[0];
  return text + fmt::format(
                    "24 blocks, width 128: from the call to the end of a run of one step {:.3f} s "
                    "(<= {:.1f} s {})\n",
                    least, kFirstStep, verdict(least <= kFirstStep));
}

}  // namespace norma::bench
