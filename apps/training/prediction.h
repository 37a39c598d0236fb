// What a run says of inputs from a file.
#pragma once

#include <string>
#include <vector>

#include "apps/training/finished_run.h"

namespace norma {

// The samples of a CSV or IDX file, scaled as those of the training: f32 (N, input...).
//
// A table's columns are found by their names where both the file and the run have some; the target
// may stand there and is passed over. Otherwise they are the features, in order. Throws Error for
// data that are no arrays, columns that do not match, and samples of another shape.
[[nodiscard]] Tensor read_inputs(const DataRecord& record, const std::string& path);

struct Prediction {
  std::string value;       // name of the class, or the number
  double probability = 0;  // of the class; 0 where a number is predicted
};

// One for each of the inputs (N, input...).
[[nodiscard]] std::vector<Prediction> predict(FinishedRun& run, const Tensor& inputs);

}  // namespace norma
