#include "apps/study/measures.h"

#include <algorithm>
#include <cmath>

namespace norma::study {
namespace {

using Arguments = const MeasureArguments&;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Mean of the losses in [begin, begin + kLossWindow); infinite where one is not finite.
double mean_loss(const std::vector<TrainPoint>& train, std::size_t begin) {
  const std::size_t n = std::min(kLossWindow, train.size() - begin);
  double sum = 0;
  for (std::size_t i = begin; i < begin + n; ++i) sum += train[i].loss;
  return std::isfinite(sum) ? sum / static_cast<double>(n) : kInfinity;
}

double final_loss(const RunRecord& run, Arguments) {
  if (run.outcome == Outcome::diverged) return kInfinity;
  if (run.train.empty()) return kMissing;
  const std::size_t n = run.train.size();
  return mean_loss(run.train, n - std::min(n, kLossWindow));
}

double best_loss(const RunRecord& run, Arguments) {
  if (run.train.empty()) return kMissing;
  double best = kInfinity;
  const std::size_t n = run.train.size();
  for (std::size_t i = 0; i + std::min(n, kLossWindow) <= n; ++i) {
    best = std::min(best, mean_loss(run.train, i));
  }
  return best;
}

const TrainPoint* point_at(const RunRecord& run, double step) {
  for (const TrainPoint& p : run.train) {
    if (static_cast<double>(p.step) == step) return &p;
  }
  return nullptr;
}

double loss_at(const RunRecord& run, Arguments given) {
  const TrainPoint* point = point_at(run, given.numbers[0]);
  if (!point) return run.outcome == Outcome::diverged ? kInfinity : kMissing;
  return std::isfinite(point->loss) ? point->loss : kInfinity;
}

double grad_norm_at(const RunRecord& run, Arguments given) {
  const TrainPoint* point = point_at(run, given.numbers[0]);
  if (!point) return run.outcome == Outcome::diverged ? kInfinity : kMissing;
  return std::isfinite(point->grad_norm) ? point->grad_norm : kInfinity;
}

double lr_at(const RunRecord& run, Arguments given) {
  const TrainPoint* point = point_at(run, given.numbers[0]);
  return point ? point->lr : kMissing;
}

double last_evaluation(const RunRecord& run, Arguments) {
  if (run.outcome == Outcome::diverged) return kInfinity;
  if (run.evaluations.empty()) return kMissing;
  const double loss = run.evaluations.back().loss;
  return std::isfinite(loss) ? loss : kInfinity;
}

double last_accuracy(const RunRecord& run, Arguments) {
  if (run.evaluations.empty()) return kMissing;
  return run.evaluations.back().accuracy.value_or(kMissing);
}

double largest_logit(const RunRecord& run, Arguments) {
  double most = kMissing;
  for (const TrainPoint& p : run.train) {
    if (!(p.largest_logit <= most)) most = p.largest_logit;
  }
  return most;
}

double loss_spikes(const RunRecord& run, Arguments) { return run.loss_spikes; }
double gradient_spikes(const RunRecord& run, Arguments) { return run.gradient_spikes; }

double seconds_of(const RunRecord& run, Arguments) { return run.seconds; }

double has_diverged(const RunRecord& run, Arguments) {
  return run.outcome == Outcome::diverged ? 1 : 0;
}

double probed(const RunRecord& run, Arguments given) {
  for (const ProbePoint& p : run.probes) {
    if (static_cast<double>(p.step) == given.numbers[0]) return probe_value(p.values, given.text);
  }
  return kMissing;
}

constexpr Measure kMeasures[] = {
    {.name = "final",
     .doc = "mean of the last 10 training losses on record; infinite for a diverged run",
     .value = final_loss},
    {.name = "best", .doc = "lowest mean of 10 training losses in a row", .value = best_loss},
    {.name = "loss", .doc = "training loss at the given step", .numbers = 1, .value = loss_at},
    {.name = "grad_norm",
     .doc = "norm of the whole gradient at the given step",
     .numbers = 1,
     .value = grad_norm_at},
    {.name = "lr", .doc = "learning rate at the given step", .numbers = 1, .value = lr_at},
    {.name = "eval",
     .doc = "loss of the last evaluation; infinite for a diverged run",
     .value = last_evaluation},
    {.name = "accuracy", .doc = "accuracy of the last evaluation", .value = last_accuracy},
    {.name = "largest_logit",
     .doc = "largest attention logit of any step; set train.log_logits",
     .value = largest_logit},
    {.name = "loss_spikes",
     .doc = "spike score of the loss, in percent of the steps",
     .value = loss_spikes},
    {.name = "gradient_spikes",
     .doc = "spike score of the gradient's norm, in percent of the steps",
     .value = gradient_spikes},
    {.name = "seconds", .doc = "time that the run took", .value = seconds_of},
    {.name = "diverged",
     .doc = "whether the run diverged: not finite, or at the level of guessing",
     .truth = true,
     .value = has_diverged},
    {.name = "probe",
     .doc = "what the probe after the given step (0: at the start) found under the given name",
     .text = true,
     .numbers = 1,
     .value = probed},
};

}  // namespace

double Measure::of(const RunRecord& run, Arguments arguments) const {
  if (!is_result(run.outcome)) return kMissing;
  return value(run, arguments);
}

std::span<const Measure> measures() { return kMeasures; }

const Measure* find_measure(std::string_view name) {
  for (const Measure& measure : kMeasures) {
    if (measure.name == name) return &measure;
  }
  return nullptr;
}

std::vector<std::string_view> measure_names() {
  std::vector<std::string_view> names;
  for (const Measure& measure : kMeasures) names.push_back(measure.name);
  return names;
}

}  // namespace norma::study
