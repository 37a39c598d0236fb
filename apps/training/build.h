// From a configuration to the parts of a run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/training/run_config.h"

namespace norma {

// What a model's pass needs of a batch beside its inputs: the masks and the source.
[[nodiscard]] Forward forward_of(const Batch& batch);
// How the model reads sequences.
[[nodiscard]] SequenceForm form_of(const ModelConfig& model);
// The data of a run, laid out for its model. Throws Error.
[[nodiscard]] std::unique_ptr<DataSet> build_data(const RunConfig& config);
// What the model gets of these data.
[[nodiscard]] Signature signature_of(const DataSpec& spec);
// The model for these data, with its initial weights.
[[nodiscard]] ModelPtr build_model(const RunConfig& config, const DataSpec& spec);
// The same model in f64, whatever the precision of the run.
[[nodiscard]] ModelPtr build_exact_model(const RunConfig& config, const DataSpec& spec);
// Throws Error if the model's output (of one sample) does not fit the loss and the targets.
void check_outputs(const LossConfig& loss, const Shape& output, const DataSpec& spec);
// Optimizer steps of the whole run. A step may take its batches from two epochs; the last batches
// of the run that make no whole step are left out. Throws Error for epochs of data without an end.
[[nodiscard]] std::int64_t total_steps(const TrainConfig& train, const DataSet& data);
// True iff the step (from 1) takes the last batch of an epoch.
[[nodiscard]] bool ends_epoch(const TrainConfig& train, const DataSet& data, std::int64_t step);
// Sizes that are not refused, but that hardly anybody means: a sentence each.
[[nodiscard]] std::vector<std::string> size_warnings(const TrainConfig& train, const DataSet& data);
// Of outputs that belong to no class of the data, a line; else empty. A head for more classes than
// a file has is allowed (a part of the data, weights from elsewhere), but seldom meant.
[[nodiscard]] std::string output_warning(const Shape& output, const DataSpec& spec);
// Tokens that one optimizer step sees; 0 where the inputs are no ids.
[[nodiscard]] std::int64_t tokens_per_step(const TrainConfig& train, const DataSpec& spec);

}  // namespace norma
