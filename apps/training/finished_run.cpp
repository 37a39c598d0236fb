#include "apps/training/finished_run.h"

#include "apps/training/build.h"
#include "apps/training/checkpoint.h"

namespace norma {

FinishedRun::FinishedRun(const std::string& folder, std::int64_t step)
    : folder_(RunFolder::open(folder)),
      config_(load_run_config(folder_.config_path())),
      data_(build_data(config_)),
      model_(build_model(config_, data_->spec())),
      step_(load_weights(folder_, step, *model_)) {
  model_->eval();
}

}  // namespace norma
