// What a transformer's stack computes, in formulas that are made from the rows that run.
#pragma once

#include <string>
#include <vector>

#include "models/transformer_config.h"

namespace norma {

// Statements on x (the residual stream), b (what came into the block) and r (the second stream),
// separated by "; ", such as "x = N_post(2.632 x + ffn(x))". Two factors side by side are
// multiplied. N_in, N_out, N_post are the norms of this branch, N the one after the last block.
struct Formula {
  std::string branch;  // "attention"; empty where it belongs to none
  std::string text;
};

// Before the first block; empty for most.
[[nodiscard]] std::vector<Formula> start_formulas(const TransformerConfig& config, Side side);
// Of block `index`. Numbers have that many digits.
[[nodiscard]] std::vector<Formula> block_formulas(const TransformerConfig& config, Side side,
                                                  std::int64_t index, int digits = 4);
// After the last block; empty where nothing follows.
[[nodiscard]] std::vector<Formula> end_formulas(const TransformerConfig& config, Side side);

}  // namespace norma
