#include "layers/placements.h"

namespace norma {

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
    row.alpha = placement.alpha.value_or(row.alpha);
    row.gain = placement.gain.value_or(row.gain);
    return row;
  });
}

std::string PlacementConfig::formula(const Depth& depth, std::string_view branch) const {
  const PlacementRow r = row(depth);
  std::string f = "x";
  if (r.norm_in) f = r.in_scale == 1 ? "N_in(x)" : fmt::format("{:.4g} N_in(x)", r.in_scale);
  f = fmt::format("{}({})", branch, f);
  if (r.norm_out) f = fmt::format("N_out({})", f);
  if (r.learned_beta) f = "beta " + f;
  f = (r.alpha == 1 ? std::string("x") : fmt::format("{:.4g} x", r.alpha)) + " + " + f;
  if (r.norm_post) f = fmt::format("N_post({})", f);
  return "x = " + f;
}

}  // namespace norma
