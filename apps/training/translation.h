// What an encoder-decoder answers, an id at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "apps/data/data_set.h"
#include "models/model.h"

namespace norma {

// Reads `source` and writes as many ids as answers have, always the likeliest one, the first behind
// data.edge; fewer if that is the likeliest. Throws Error if the data have no source, or `source`
// is empty or longer than theirs.
[[nodiscard]] std::vector<std::int64_t> translate(Model& model, const DataSpec& data,
                                                  std::span<const std::int64_t> source);

}  // namespace norma
