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
class EvaluationMode {
 public:
  explicit EvaluationMode(Model& model) : model_(model), before_(model.training()) { model.eval(); }
  ~EvaluationMode() { model_.train(before_); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

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

std::int64_t count_correct(const Tensor& outputs, const Tensor& targets, const LossConfig& loss) {
  const auto* cross_entropy = loss.get_if<CrossEntropyConfig>();
  const std::vector<std::int64_t> picked = argmax(outputs, -1).to_ids();
  const std::vector<std::int64_t> expected = targets.to_ids();
  std::int64_t correct = 0;
  for (std::size_t i = 0; i < picked.size(); ++i) {
    if (cross_entropy && expected[i] == cross_entropy->ignore) continue;
    correct += picked[i] == expected[i];
  }
  return correct;
}

Evaluation evaluate(Model& model, const DataSet& data, Part part, const LossConfig& loss,
                    std::int64_t batch_size, std::optional<std::int64_t> batches) {
  const NoGrad off;
  const EvaluationMode mode(model);
  std::int64_t n = data.num_batches(part, batch_size);
  if (n == DataSet::kEndless) n = kEndlessBatches;
  n = std::min(n, batches.value_or(n));
  Evaluation result;
  result.part = part;
  double sum = 0;
  std::int64_t correct = 0;
  const bool classifies = loss.get_if<CrossEntropyConfig>() != nullptr;
  for (std::int64_t i = 0; i < n; ++i) {
    const Batch batch = data.batch(part, i, batch_size);
    const Tensor outputs = model.forward(batch.inputs, forward_of(batch));
    sum += loss.sum(outputs, batch.targets).item();
    result.count += loss.count(outputs.shape(), batch.targets);
    if (classifies) correct += count_correct(outputs, batch.targets, loss);
  }
  const auto count = static_cast<double>(std::max<std::int64_t>(1, result.count));
  result.loss = unsigned_nan(sum / count);
  if (classifies) result.accuracy = static_cast<double>(correct) / count;
  return result;
}

}  // namespace norma
