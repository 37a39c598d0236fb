#include "apps/training/run_result.h"

#include <nlohmann/json.hpp>

#include "apps/training/host.h"
#include "core/file.h"
#include "core/storage.h"

namespace norma {
namespace {

Json final_json(const RunResult& result) {
  Json j;
  j["train_loss"] = json_number(result.final_loss);
  if (result.final) {
    j["split"] = name_of(result.final->part);
    j["loss"] = json_number(result.final->loss);
    if (result.final->accuracy) j["accuracy"] = json_number(*result.final->accuracy);
    if (result.final->exact) j["exact"] = json_number(*result.final->exact);
  }
  return j;
}

}  // namespace

std::string_view name_of(RunStatus status) {
  constexpr std::string_view kNames[] = {"completed", "diverged", "interrupted", "failed",
                                         "failed_to_learn"};
  return kNames[static_cast<int>(status)];
}

void write_summary(const RunFolder& folder, const RunConfig& config, const RunResult& result,
                   const TrainState& state, std::int64_t num_parameters) {
  Json j;
  j["status"] = name_of(result.status);
  j["steps"] = result.steps;
  j["final"] = final_json(result);
  Json best;
  if (state.best) {
    best["step"] = state.best_step;
    best[config.train.best == BestBy::accuracy ? "accuracy" : "loss"] = json_number(*state.best);
  }
  j["best"] = best;
  if (!result.reason.empty()) j["reason"] = result.reason;
  j["skipped"] = state.skipped;
  j["spike_score"]["loss"] = state.loss_spikes.percent();
  j["spike_score"]["grad_norm"] = state.norm_spikes.percent();
  if (const auto lineage = folder.lineage()) j["lineage"] = *lineage;
  j["parameters"] = num_parameters;
  j["seconds"] = result.seconds;
  j["peak_bytes"] = memory_stats().peak_bytes;
  j["versions"] = versions_json();
  j["host"] = host_json();
  write_file(folder.summary_path(), j.dump(2) + "\n");
}

}  // namespace norma
