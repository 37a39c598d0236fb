// What an output may see: how far it moves when something is changed that it should, or should not,
// depend on.
//
//   sees.batch     of the first sample, when all other samples of the batch are other ones
//   sees.padding   when places that count for nothing are added behind each sequence
//   sees.later     of the first half of a sequence, when the ids of its second half are other ones
//   sees.scale     when all inputs (numbers) are doubled
//   sees.shift     when 1 is added to all of them
//   sees.contrast  of the first sample, when its inputs alone are doubled
//
// Each is |y' - y| / |y| over the outputs in question (padding is never one of them), on the first
// training batch, in training mode but without dropout. 0 is exact: not a bit has moved.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "apps/data/data_set.h"
#include "models/model.h"

namespace norma {

// Those that there are: `batch` in batches of two or more, `padding` and `later` for ids with a
// model that takes shorter sequences or answers at each place, the others for numbers.
// Running statistics move; parameters do not.
[[nodiscard]] std::vector<std::pair<std::string, double>> sees(Model& model, const DataSet& data,
                                                               std::int64_t batch);

}  // namespace norma
