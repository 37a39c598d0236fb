#include "layers/placements.h"

namespace norma {

std::string_view name_of(BranchKind kind) {
  constexpr std::string_view kNames[] = {"attention", "cross_attention", "ffn"};
  return kNames[static_cast<int>(kind)];
}

config::Fields PlacementOptions::fields() {
  using namespace config;
  return {
      field("alpha", &PlacementOptions::alpha, "Factor on x; null: the placement's own."),
      field("gain", &PlacementOptions::gain,
            "Factor on the initial v, out and feed-forward matrices; null: the placement's own.",
            at_least(0))};
}

PlacementRow PlacementConfig::row(const Depth& depth) const {
  return visit([&](const auto& placement) {
    PlacementRow row = placement.row(depth);
    if (!row.fixed_alpha) row.alpha = placement.alpha.value_or(row.alpha);
    row.gain = placement.gain.value_or(row.gain);
    return row;
  });
}

std::string_view PlacementConfig::refuses_cross_attention() const {
  return visit([]<class P>(const P&) -> std::string_view {
    if constexpr (requires { P::refuses_cross_attention; }) return P::refuses_cross_attention;
    return {};
  });
}

std::string PlacementRow::formula(std::string_view branch, int digits) const {
  const auto times = [&](double factor) {
    return factor == 1 ? std::string() : fmt::format("{:.{}g} ", factor, digits);
  };
  std::string f = reads_block_input ? "b" : "x";
  if (norm_in) f = fmt::format("N_in({})", f);
  f = fmt::format("{}({}{})", branch, times(in_scale), f);
  if (norm_out) f = fmt::format("N_out({})", f);
  if (learned_beta) f = "beta " + f;
  std::string text = norm_before ? "x = N_post(x); " : "";
  if (second_stream) {
    text += fmt::format("f = {}; r = r + f; ", f);
    f = "f";
  }
  std::string sum = fmt::format("{}{}x + {}", times(alpha), omega ? "omega " : "", f);
  if (adds_block_input) sum = "b + " + sum;
  return text + "x = " + (norm_post ? fmt::format("N_post({})", sum) : sum);
}

}  // namespace norma
