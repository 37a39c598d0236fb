// Cache: what generation keeps of the tokens before, so that a new token costs one position.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace norma {

// Given to Forward, it makes a pass go on where the last one ended: the inputs are the new tokens
// alone, and stand at the positions from `length` on. Each layer that looks at other positions
// keeps what it needs under its path. The model adds the new tokens to `length` at the end of a
// pass. Start with an empty one for every text.
struct Cache {
  std::int64_t length = 0;  // tokens of the passes before
  // attention: keys and values (B, length, heads, D); cross-attention: those of the source, which
  // the encoder so reads once; a cell: its state (B, hidden).
  std::map<std::string, std::vector<Tensor>> kept;
};

}  // namespace norma
