// Placements: where the norms stand in a residual block. One formula, and a row of a table each:
//
//   x <- N_post(alpha x + beta N_out(F(N_in(x))))
//
// F is attention or the feed-forward, N a norm; a norm that a row does not name is left out.
//
//   placement   N_in          N_out  N_post  alpha       beta        gain of v, out, ffn  final
//   post                             yes     1           1
//   pre         yes                          1           1                                yes
//   deepnorm                         yes     (2L)^(1/4)  1           (8L)^(-1/4)
//   sandwich    yes           yes            1           1                                yes
//   peri        yes           yes            1           1                                yes
//   output                    yes            1           1                                yes
//   lns         yes /sqrt(l)                 1           1                                yes
//   keel        yes                  yes     2L          1
//   rezero                                   1           learned, 0
//   none                                     1           1
//
// final: a norm after the last block. L is the number of blocks, l counts them from 1; in `keel`
// the first block is `pre`. To add a placement: a structure below, and its name in PlacementConfig.
#pragma once

#include <cmath>
#include <optional>

#include "core/config/config.h"

namespace norma {

// Where a block stands.
struct Depth {
  std::int64_t block = 1;     // l, from 1
  std::int64_t blocks = 1;    // L
  std::int64_t branches = 2;  // residual branches a block
  [[nodiscard]] double total_branches() const { return static_cast<double>(branches * blocks); }
};

// One row of the table, for one block.
struct PlacementRow {
  bool norm_in = false;
  bool norm_out = false;
  bool norm_post = false;
  double in_scale = 1;  // factor on N_in
  double alpha = 1;
  bool learned_beta = false;  // beta starts at 0; else it is 1
  double gain = 1;            // factor on the initial v, out and feed-forward matrices
  bool final_norm = false;
};

// What every placement's configuration may override.
struct PlacementOptions {
  std::optional<double> alpha;
  std::optional<double> gain;
  static config::Fields fields();
};

struct PrePlacement : PlacementOptions {
  static constexpr const char* type = "pre";
  static constexpr const char* doc = "x + F(N(x)), and a norm after the last block.";
  static constexpr const char* source = "Xiong et al. 2020, arXiv 2002.04745; GPT-2, LLaMA";
  static PlacementRow row(const Depth&) { return {.norm_in = true, .final_norm = true}; }
};

struct PostPlacement : PlacementOptions {
  static constexpr const char* type = "post";
  static constexpr const char* doc = "N(x + F(x)).";
  static constexpr const char* source = "Vaswani et al. 2017, arXiv 1706.03762; BERT";
  static PlacementRow row(const Depth&) { return {.norm_post = true}; }
};

struct DeepNormPlacement : PlacementOptions {
  static constexpr const char* type = "deepnorm";
  static constexpr const char* doc =
      "N((2L)^(1/4) x + F(x)); v, out and feed-forward start with gain (8L)^(-1/4).";
  static constexpr const char* source = "Wang et al. 2022, arXiv 2203.00555";
  static PlacementRow row(const Depth& d) {
    return {.norm_post = true,
            .alpha = std::pow(d.total_branches(), 0.25),
            .gain = std::pow(4 * d.total_branches(), -0.25)};
  }
};

struct SandwichPlacement : PlacementOptions {
  static constexpr const char* type = "sandwich";
  static constexpr const char* doc = "x + N(F(N(x))), and a norm after the last block.";
  static constexpr const char* source = "Ding et al. 2021, arXiv 2105.13290; Gemma 2";
  static PlacementRow row(const Depth&) {
    return {.norm_in = true, .norm_out = true, .final_norm = true};
  }
};

struct PeriPlacement : PlacementOptions {
  static constexpr const char* type = "peri";
  static constexpr const char* doc = "x + N(F(N(x))), and a norm after the last block.";
  static constexpr const char* source = "Kim et al. 2025, arXiv 2502.02732";
  static PlacementRow row(const Depth& d) { return SandwichPlacement::row(d); }
};

struct OutputPlacement : PlacementOptions {
  static constexpr const char* type = "output";
  static constexpr const char* doc = "x + N(F(x)), and a norm after the last block.";
  static constexpr const char* source = "OLMo 2, arXiv 2501.00656";
  static PlacementRow row(const Depth&) { return {.norm_out = true, .final_norm = true}; }
};

struct LnsPlacement : PlacementOptions {
  static constexpr const char* type = "lns";
  static constexpr const char* doc =
      "x + F(N(x) / sqrt(l)) in block l, and a norm after the last block.";
  static constexpr const char* source = "Sun et al. 2025, arXiv 2502.05795";
  static PlacementRow row(const Depth& d) {
    return {.norm_in = true,
            .in_scale = 1 / std::sqrt(static_cast<double>(d.block)),
            .final_norm = true};
  }
};

struct KeelPlacement : PlacementOptions {
  static constexpr const char* type = "keel";
  static constexpr const char* doc = "N(2L x + F(N(x))); the first block is x + F(N(x)).";
  static constexpr const char* source = "arXiv 2601.19895";
  static PlacementRow row(const Depth& d) {
    if (d.block == 1) return {.norm_in = true};
    return {.norm_in = true, .norm_post = true, .alpha = d.total_branches()};
  }
};

struct ReZeroPlacement : PlacementOptions {
  static constexpr const char* type = "rezero";
  static constexpr const char* doc = "x + beta F(x) with a learned beta that starts at 0.";
  static constexpr const char* source = "Bachlechner et al. 2020, arXiv 2003.04887";
  static PlacementRow row(const Depth&) { return {.learned_beta = true}; }
};

struct NoPlacement : PlacementOptions {
  static constexpr const char* type = "none";
  static constexpr const char* doc = "x + F(x): no norm at all.";
  static constexpr const char* source = "the control";
  static PlacementRow row(const Depth&) { return {}; }
};

struct PlacementConfig : config::OneOf<PrePlacement, PostPlacement, DeepNormPlacement,
                                       SandwichPlacement, PeriPlacement, OutputPlacement,
                                       LnsPlacement, KeelPlacement, ReZeroPlacement, NoPlacement> {
  static constexpr const char* family = "placement";
  static constexpr const char* family_doc =
      "x <- N_post(alpha x + beta N_out(F(N_in(x)))): where the norms stand in a block.";
  using OneOf::OneOf;

  // The row for a block, with what the configuration overrides.
  [[nodiscard]] PlacementRow row(const Depth& depth) const;
  // The formula of one branch as it will run: "x = N(2.632 x + F(x))".
  [[nodiscard]] std::string formula(const Depth& depth, std::string_view branch) const;
};

}  // namespace norma
