#include "models/formula.h"

namespace norma {

std::vector<Formula> start_formulas(const TransformerConfig& config, Side side) {
  if (!config.has_second_stream(side)) return {};
  return {{"", "r = x"}};
}

std::vector<Formula> block_formulas(const TransformerConfig& config, Side side, std::int64_t index,
                                    int digits) {
  std::vector<BranchKind> branches{BranchKind::attention};
  if (side == Side::decoder) branches.push_back(BranchKind::cross_attention);
  branches.push_back(BranchKind::ffn);
  std::vector<Formula> formulas;
  bool keeps_input = false;
  for (const BranchKind branch : branches) {
    const PlacementRow row = config.row(side, index, branch);
    formulas.push_back({std::string(name_of(branch)), row.formula(name_of(branch), digits)});
    keeps_input |= row.uses_block_input();
  }
  if (keeps_input) formulas.insert(formulas.begin(), {"", "b = x"});
  return formulas;
}

std::vector<Formula> end_formulas(const TransformerConfig& config, Side side) {
  const bool norm = config.has_final_norm(side);
  if (config.has_second_stream(side)) return {{"", norm ? "x = x + N(r)" : "x = x + r"}};
  if (norm) return {{"", "x = N(x)"}};
  return {};
}

}  // namespace norma
