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
  bool cache = true;  // false: every token computes all positions again, to the same effect
};

// Continues `ids`, calling `emit` with every new token. Where the data have an id that begins and
// ends a sequence (`edge`), it stands before them, and ends the text; else, where `ids` is empty,
// it starts from token 0.
//
// Note [What generation sees]. A model with a context sees the text from some token on; at first
// from the start. When more than a context lies behind that token, it moves on so that half a
// context is left, and the model reads that half anew. (Sliding by one token a step would change
// the position of every kept key, and cost a whole context a token.) A recurrent model has no
// context: its state goes on for ever.
void generate(Model& model, const DataSpec& data, std::vector<std::int64_t> ids,
              const GenerationOptions& options, const std::function<void(std::int64_t)>& emit);

}  // namespace norma
