// What a configuration will run, in words and formulas.
#pragma once

#include <string>

#include "apps/training/run_config.h"

namespace norma {

// The block's formula from the placement's table, shapes, parameters, the length and the rate of
// the run, and switches that change nothing here. Reads the data for their shapes, and builds the
// model.
[[nodiscard]] std::string explain(const RunConfig& config);

// The switches of a transformer that are set and change nothing.
[[nodiscard]] std::vector<std::string> dead_switches(const TransformerConfig& config);

}  // namespace norma
