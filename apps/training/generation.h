// Sampling from a decoder, a token at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "apps/data/data_set.h"
#include "models/model.h"

namespace norma {

struct GenerationOptions {
  std::int64_t tokens = 200;
  double temperature = 0.8;  // 0: the likeliest token
  std::int64_t top_k = 0;    // 0: all
  std::uint64_t seed = 0;
};

// Continues `ids`, calling `emit` with every new token. The model sees at most the last context of
// tokens. Where `ids` is empty it starts from token 0.
void generate(Model& model, const DataSpec& data, std::vector<std::int64_t> ids,
              const GenerationOptions& options, const std::function<void(std::int64_t)>& emit);

}  // namespace norma
