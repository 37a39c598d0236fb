#include "apps/study/run_record.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>

#include "apps/training/run_folder.h"
#include "core/file.h"

namespace norma::study {
namespace {

constexpr const char* kOutcomes[] = {"completed", "diverged",    "failed_to_learn",
                                     "failed",    "interrupted", "missing"};

double number_at(const Json& record, const char* key) {
  return record.contains(key) ? number_of(record[key]) : kMissing;
}

}  // namespace

const char* name_of(Outcome outcome) { return kOutcomes[static_cast<int>(outcome)]; }

Outcome outcome_of(const std::string& name) {
  const auto found = std::find(std::begin(kOutcomes), std::end(kOutcomes), name);
  return found == std::end(kOutcomes) ? Outcome::missing
                                      : static_cast<Outcome>(found - std::begin(kOutcomes));
}

RunRecord read_run(const std::string& folder) {
  const RunFolder run(folder);
  RunRecord result;
  if (std::filesystem::exists(run.summary_path())) {
    const Json summary = config::parse_json(read_file(run.summary_path()), run.summary_path());
    result.outcome = outcome_of(summary.value("status", std::string()));
    result.reason = summary.value("reason", std::string());
    result.seconds = number_at(summary, "seconds");
    if (const auto spikes = summary.find("spike_score"); spikes != summary.end()) {
      result.loss_spikes = number_at(*spikes, "loss");
      result.gradient_spikes = number_at(*spikes, "grad_norm");
    }
  }
  if (!std::filesystem::exists(run.metrics_path())) return result;
  for (const Json& record : read_metrics(run.metrics_path())) {
    const std::string kind = record.value("kind", std::string());
    const std::int64_t step = record.value("step", std::int64_t{0});
    if (kind == "train") {
      result.train.push_back({step, number_at(record, "loss"), number_at(record, "lr"),
                              number_at(record, "grad_norm"), number_at(record, "largest_logit")});
    } else if (kind == "eval") {
      EvalPoint point{step, record.value("split", std::string()), number_at(record, "loss"), {}};
      if (record.contains("accuracy")) point.accuracy = number_at(record, "accuracy");
      result.evaluations.push_back(std::move(point));
    } else if (kind == "probe") {
      ProbePoint point{step, {}};
      for (const auto& [name, value] : record.items()) {
        if (name != "kind" && name != "step") point.values.emplace_back(name, number_of(value));
      }
      result.probes.push_back(std::move(point));
    }
  }
  return result;
}

}  // namespace norma::study
