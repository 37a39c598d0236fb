#include "apps/study/measures.h"

#include <algorithm>
#include <cmath>

namespace norma::study {
namespace {

using Numbers = std::span<const double>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Mean of the losses in [begin, begin + kLossWindow); infinite where one is not finite.
double mean_loss(const std::vector<TrainPoint>& train, std::size_t begin) {
  const std::size_t n = std::min(kLossWindow, train.size() - begin);
  double sum = 0;
  for (std::size_t i = begin; i < begin + n; ++i) sum += train[i].loss;
  return std::isfinite(sum) ? sum / static_cast<double>(n) : kInfinity;
}

double final_loss(const RunRecord& run, Numbers) {
  if (run.outcome == Outcome::diverged) return kInfinity;
  if (run.train.empty()) return kMissing;
  const std::size_t n = run.train.size();
  return mean_loss(run.train, n - std::min(n, kLossWindow));
}

double best_loss(const RunRecord& run, Numbers) {
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

double loss_at(const RunRecord& run, Numbers numbers) {
  const TrainPoint* point = point_at(run, numbers[0]);
  if (!point) return run.outcome == Outcome::diverged ? kInfinity : kMissing;
  return std::isfinite(point->loss) ? point->loss : kInfinity;
}

double grad_norm_at(const RunRecord& run, Numbers numbers) {
  const TrainPoint* point = point_at(run, numbers[0]);
  if (!point) return run.outcome == Outcome::diverged ? kInfinity : kMissing;
  return std::isfinite(point->grad_norm) ? point->grad_norm : kInfinity;
}

double last_evaluation(const RunRecord& run, Numbers) {
  if (run.outcome == Outcome::diverged) return kInfinity;
  if (run.evaluations.empty()) return kMissing;
  const double loss = run.evaluations.back().loss;
  return std::isfinite(loss) ? loss : kInfinity;
}

double last_accuracy(const RunRecord& run, Numbers) {
  if (run.evaluations.empty()) return kMissing;
  return run.evaluations.back().accuracy.value_or(kMissing);
}

double seconds_of(const RunRecord& run, Numbers) { return run.seconds; }

double has_diverged(const RunRecord& run, Numbers) {
  return run.outcome == Outcome::diverged ? 1 : 0;
}

constexpr Measure kMeasures[] = {
    {"final", "mean of the last 10 training losses on record; infinite for a diverged run", false,
     0, final_loss},
    {"best", "lowest mean of 10 training losses in a row", false, 0, best_loss},
    {"loss", "training loss at the given step", false, 1, loss_at},
    {"grad_norm", "norm of the whole gradient at the given step", false, 1, grad_norm_at},
    {"eval", "loss of the last evaluation; infinite for a diverged run", false, 0, last_evaluation},
    {"accuracy", "accuracy of the last evaluation", false, 0, last_accuracy},
    {"seconds", "time that the run took", false, 0, seconds_of},
    {"diverged", "whether the run was stopped since it was not finite", true, 0, has_diverged},
};

}  // namespace

double Measure::of(const RunRecord& run, Numbers numbers) const {
  if (run.outcome == Outcome::failed || run.outcome == Outcome::missing) return kMissing;
  return value(run, numbers);
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
