#include "apps/training/evaluation.h"

#include <algorithm>

#include "apps/training/build.h"
#include "apps/training/run_folder.h"
#include "core/autograd.h"
#include "core/ops/reduce.h"

namespace norma {
namespace {

constexpr std::int64_t kEndlessBatches = 16;

// Restores the mode of a model when it ends.
class ModeScope {
 public:
  ModeScope(Model& model, EvaluationMode mode) : model_(model), before_(model.training()) {
    model.train(mode == EvaluationMode::training);
  }
  ~ModeScope() { model_.train(before_); }
  ModeScope(const ModeScope&) = delete;
  ModeScope& operator=(const ModeScope&) = delete;

 private:
  Model& model_;
  bool before_;
};

}  // namespace

std::optional<Part> evaluation_part(const DataSet& data) {
  for (Part part : {Part::validation, Part::test}) {
    if (data.size(part) > 0) return part;
  }
  return std::nullopt;
}

std::string shares_text(const Evaluation& evaluation, std::string_view before) {
  std::string text;
  const auto add = [&](const char* name, std::optional<double> share) {
    if (share) text += fmt::format("{}{} {:.2f} %", before, name, 100 * *share);
  };
  add("accuracy", evaluation.accuracy);
  add("exact", evaluation.exact);
  return text;
}

Correct count_correct(const Tensor& outputs, const Tensor& targets, std::int64_t ignore) {
  const std::vector<std::int64_t> picked = argmax(outputs, -1).to_ids();
  const std::vector<std::int64_t> expected = targets.to_ids();
  const auto samples = static_cast<std::size_t>(targets.size(0));
  const std::size_t each = picked.size() / samples;
  Correct correct;
  for (std::size_t s = 0; s < samples; ++s) {
    bool all = true;
    for (std::size_t i = s * each; i < (s + 1) * each; ++i) {
      if (expected[i] == ignore) continue;
      const bool right = picked[i] == expected[i];
      correct.targets += right;
      all = all && right;
    }
    correct.samples += all;
  }
  return correct;
}

Evaluation evaluate(Model& model, const DataSet& data, Part part, const LossConfig& loss,
                    std::int64_t batch_size, std::optional<std::int64_t> batches,
                    EvaluationMode mode) {
  const NoGrad off;
  const ModeScope scope(model, mode);
  std::int64_t n = data.num_batches(part, batch_size);
  if (n == DataSet::kEndless) n = kEndlessBatches;
  n = std::min(n, batches.value_or(n));
  Evaluation result;
  result.part = part;
  double sum = 0;
  Correct correct;
  std::int64_t samples = 0;
  const auto* classifies = loss.get_if<CrossEntropyConfig>();
  for (std::int64_t i = 0; i < n; ++i) {
    const Batch batch = data.batch(part, i, batch_size);
    Forward pass = forward_of(batch);
    pass.stream = fmt::format("evaluation/{}", i);
    const Tensor outputs = model.forward(batch.inputs, pass);
    sum += loss.sum(outputs, batch.targets).item();
    result.count += loss.count(outputs.shape(), batch.targets);
    samples += batch.samples();
    if (!classifies) continue;
    const Correct now = count_correct(outputs, batch.targets, classifies->ignore);
    correct.targets += now.targets;
    correct.samples += now.samples;
  }
  // Over no target, all of it is 0 / 0: not a number.
  const auto count = static_cast<double>(result.count);
  result.loss = unsigned_nan(sum / count);
  if (classifies) result.accuracy = unsigned_nan(static_cast<double>(correct.targets) / count);
  if (classifies && data.spec().answers) {
    result.exact = static_cast<double>(correct.samples) / static_cast<double>(samples);
  }
  return result;
}

}  // namespace norma
