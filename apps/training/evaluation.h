// Loss and accuracy over a part of the data.
#pragma once

#include <optional>

#include "apps/data/data_set.h"
#include "layers/losses.h"
#include "models/model.h"

namespace norma {

struct Evaluation {
  Part part = Part::validation;
  double loss = 0;                 // the mean over the targets that count
  std::optional<double> accuracy;  // share of them that the largest output names; classification
  std::int64_t count = 0;
};

// The part that a data set is judged by: the test part where there is one, else validation.
[[nodiscard]] std::optional<Part> evaluation_part(const DataSet& data);

// Runs the model over `part` in evaluation mode and without a graph, and leaves its mode as it was.
// Nothing of the training changes. `batches` limits an evaluation (absent: all; of an endless part,
// 16).
[[nodiscard]] Evaluation evaluate(Model& model, const DataSet& data, Part part,
                                  const LossConfig& loss, std::int64_t batch_size,
                                  std::optional<std::int64_t> batches = std::nullopt);

// Right answers among the targets that count: argmax over the last axis.
[[nodiscard]] std::int64_t count_correct(const Tensor& outputs, const Tensor& targets,
                                         const LossConfig& loss);

}  // namespace norma
