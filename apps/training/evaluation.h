// Loss and accuracy over a part of the data.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "apps/data/data_set.h"
#include "layers/losses.h"
#include "models/model.h"

namespace norma {

struct Evaluation {
  Part part = Part::validation;
  double loss = 0;                 // the mean over the targets that count
  std::optional<double> accuracy;  // share of them that the largest output names; classification
  // Share of the samples whose targets are all named, where a sample's targets are one answer. A
  // model that writes its answer by always taking the likeliest token is right on the same samples.
  std::optional<double> exact;
  std::int64_t count = 0;
};

// "  accuracy 91.20 %  exact 80.00 %", with `before` before each, as far as there are such shares.
[[nodiscard]] std::string shares_text(const Evaluation& evaluation, std::string_view before = "  ");

// The part that a data set is judged by: validation where there is one, else the test part.
[[nodiscard]] std::optional<Part> evaluation_part(const DataSet& data);

// How the model runs in an evaluation. `training` is the mistake of a forgotten eval(): batch
// statistics, dropout, and running statistics that move.
enum class EvaluationMode : std::uint8_t { evaluation, training };

// Runs the model over `part` in that mode and without a graph, and leaves its mode as it was.
// Nothing of the training changes in evaluation mode. `batches` limits an evaluation (absent: all;
// of an endless part, 16).
[[nodiscard]] Evaluation evaluate(Model& model, const DataSet& data, Part part,
                                  const LossConfig& loss, std::int64_t batch_size,
                                  std::optional<std::int64_t> batches = std::nullopt,
                                  EvaluationMode mode = EvaluationMode::evaluation);

// Right answers: argmax over the last axis.
struct Correct {
  std::int64_t targets = 0;  // among those that count
  std::int64_t samples = 0;  // with all their targets right; a sample without any is right
};
[[nodiscard]] Correct count_correct(const Tensor& outputs, const Tensor& targets,
                                    std::int64_t ignore = kIgnored);

}  // namespace norma
