// A run read back from its folder: configuration, data and the weights of a checkpoint.
#pragma once

#include <memory>
#include <string>

#include "apps/data/data_sets.h"
#include "apps/training/run_config.h"
#include "apps/training/run_folder.h"
#include "models/models.h"

namespace norma {

class FinishedRun {
 public:
  // `step` 0: the best checkpoint, or the newest. Throws Error if `folder` is no run or has none.
  explicit FinishedRun(const std::string& folder, std::int64_t step = 0);

  [[nodiscard]] const RunFolder& folder() const { return folder_; }
  [[nodiscard]] const RunConfig& config() const { return config_; }
  [[nodiscard]] const DataSet& data() const { return *data_; }
  [[nodiscard]] Model& model() { return *model_; }
  // Of the checkpoint.
  [[nodiscard]] std::int64_t step() const { return step_; }

 private:
  RunFolder folder_;
  RunConfig config_;
  std::unique_ptr<DataSet> data_;
  ModelPtr model_;
  std::int64_t step_;
};

}  // namespace norma
