#include "apps/training/finished_run.h"

#include <filesystem>

#include "apps/training/build.h"
#include "apps/training/checkpoint.h"

namespace norma {

FinishedRun::FinishedRun(const std::string& folder, std::int64_t step)
    : folder_(RunFolder::open(folder)),
      config_(load_run_config(folder_.config_path())),
      record_(kept_record()),
      model_(build_model(config_, spec())),
      step_(load_weights(folder_, step, *model_)) {
  model_->eval();
  if (const auto half = half_type(config_.train.precision)) {
    halves_ = flatten(model_->named_parameters(), half);
  }
}

// A run of an older version of the program kept none: its data tell.
DataRecord FinishedRun::kept_record() {
  if (std::filesystem::exists(folder_.data_path())) return read_data_record(folder_.data_path());
  data_ = build_data(config_);
  return data_->record();
}

Tokenizer FinishedRun::tokenizer() const {
  require(!record_.tokenizer.empty(), "{}: its data are \"{}\", not text", folder_.path(),
          config_.data.type());
  return Tokenizer::from(record_);
}

const DataSet& FinishedRun::data() {
  if (!data_) {
    std::unique_ptr<DataSet> data = build_data(config_);
    check_same_data(record_, data->record(), folder_.path());
    data_ = std::move(data);
  }
  return *data_;
}

}  // namespace norma
