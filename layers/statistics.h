// The type that a norm computes its statistics in, as a configuration says it.
#pragma once

#include <array>
#include <string_view>

#include "core/ops/norm_rows.h"

namespace norma {

constexpr auto config_names(Statistics) {
  return std::to_array<std::string_view>({"f32", "input"});
}

constexpr const char* kStatisticsDoc =
    "In bf16 and f16: statistics and all between in f32, or (input) in the type of the input, "
    "where every step rounds; for study.";

}  // namespace norma
