// A run read back from its folder: configuration, what it kept of its data, and the weights of a
// checkpoint.
#pragma once

#include <memory>
#include <string>

#include "apps/data/data_sets.h"
#include "apps/data/tokenizer.h"
#include "apps/training/run_config.h"
#include "apps/training/run_folder.h"
#include "core/flat.h"
#include "models/models.h"

namespace norma {

class FinishedRun {
 public:
  // `step` 0: the best checkpoint, or the newest. Throws Error if `folder` is no run or has none.
  explicit FinishedRun(const std::string& folder, std::int64_t step = 0);

  [[nodiscard]] const RunFolder& folder() const { return folder_; }
  [[nodiscard]] const RunConfig& config() const { return config_; }
  [[nodiscard]] Model& model() { return *model_; }
  // Of the checkpoint.
  [[nodiscard]] std::int64_t step() const { return step_; }

  // Without reading the data.
  [[nodiscard]] const DataRecord& record() const { return record_; }
  [[nodiscard]] DataSpec spec() const { return spec_of(record_); }
  // Throws Error if the inputs are no text.
  [[nodiscard]] Tokenizer tokenizer() const;

  // Reads them when first asked. Throws Error if they are not those that the run was trained on.
  [[nodiscard]] const DataSet& data();

 private:
  [[nodiscard]] DataRecord kept_record();

  RunFolder folder_;
  RunConfig config_;
  std::unique_ptr<DataSet> data_;  // null until it is asked for
  DataRecord record_;
  ModelPtr model_;
  std::int64_t step_;
  FlatParametersPtr halves_;  // the copies that a model in bf16 or f16 computes with
};

}  // namespace norma
