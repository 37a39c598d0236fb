// Single ops beside the machine's copy: what passes over memory should cost what its bytes cost.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace norma::bench {

// Norms, softmax, GELU, cross-entropy and AdamW, forward and backward, over operands that change
// from call to call and together fill four times the last cache. For each: the median time, and the
// bytes that must move (every operand read once, every result written once) a second, as a share of
// those of a copy that runs in turns with it (see Copies). Aimed at: 80 %. `seconds` are spent on
// each. Behind it: RMSNorm beside LayerNorm, alone and in a whole step. With `only`: these ops
// alone.
[[nodiscard]] std::string op_table(double seconds, std::span<const std::string> only = {});
// The names of the ops.
[[nodiscard]] std::vector<std::string> op_names();

}  // namespace norma::bench
