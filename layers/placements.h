// Placements: where the norms stand in a residual block. One formula, run for each branch F of a
// block in turn (attention, cross-attention in a decoder that reads a source, feed-forward), and a
// row of a table for each placement:
//
//   x <- N_post(alpha x + beta N_out(F(N_in(x))))
//
// N is a norm; one that a row does not name is left out.
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
//   mix         as `post` in the blocks before L/4, as `pre` in the others                yes
//   admin                            yes     omega       1
//   none                                     1           1
//
// Further ones add a term to it; b is what came into the block:
//
//   parallel    F reads N_in(b): all branches of the block read the same        as pre    yes
//   b2t         the last branch adds b beside x                                 as post
//   resi_dual   a second stream, r <- r + F(x); at the end x + N(r)             as post   yes
//   hybrid      x <- N(x) before the feed-forward, alone; RMSNorm on q, k, v              yes
//
// final: a norm after the last block. L is the number of blocks, l counts them from 1, 2L the
// branches of the stack (3L with cross-attention); in `keel` the first block is `pre`. omega is a
// learned vector, see Note [Profiling] in layers/block.h. To add a placement: a structure below,
// and its name in PlacementConfig.
#pragma once

#include <cmath>
#include <optional>

#include "core/config/config.h"

namespace norma {

enum class BranchKind : std::uint8_t { attention, cross_attention, ffn };
[[nodiscard]] std::string_view name_of(BranchKind kind);

// Where a branch stands.
struct Depth {
  std::int64_t block = 1;     // l, from 1
  std::int64_t blocks = 1;    // L
  std::int64_t branches = 2;  // residual branches a block
  // Of an encoder-decoder's encoder: the decoder's number of blocks; else 0.
  std::int64_t decoder_blocks = 0;
  BranchKind branch = BranchKind::attention;
  [[nodiscard]] double total_branches() const { return static_cast<double>(branches * blocks); }
};

// One row of the table, for one branch of one block.
struct PlacementRow {
  bool norm_in = false;
  bool norm_out = false;
  bool norm_post = false;
  double in_scale = 1;  // factor on N_in
  double alpha = 1;
  bool fixed_alpha = false;   // a configured alpha is not for this row
  bool learned_beta = false;  // beta starts at 0; else it is 1
  double gain = 1;            // factor on the initial v, out and feed-forward matrices
  bool final_norm = false;

  bool omega = false;              // alpha is, times this one, a learned vector
  bool norm_before = false;        // x <- N(x) before all else
  bool reads_block_input = false;  // F reads b in the place of x
  bool adds_block_input = false;   // b is added beside alpha x
  bool second_stream = false;      // r <- r + F, too
  bool norm_heads = false;         // RMSNorm on each head of q, k and v

  // True iff the sum is x + F(...), with nothing between F and it.
  [[nodiscard]] bool adds_plainly() const {
    return !norm_out && !learned_beta && !second_stream && alpha == 1 && !omega &&
           !adds_block_input;
  }
  [[nodiscard]] bool uses_block_input() const { return reads_block_input || adds_block_input; }
  // What a branch does, as it will run: "x = N_post(2.632 x + ffn(x))". Statements are separated
  // by "; ", numbers have that many digits.
  [[nodiscard]] std::string formula(std::string_view branch, int digits = 4) const;
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

// In an encoder-decoder of N and M blocks the decoder has (3M)^(1/4) and (12M)^(-1/4), the encoder
// 0.81 (N^4 M)^(1/16) and 0.87 (N^4 M)^(-1/16).
struct DeepNormPlacement : PlacementOptions {
  static constexpr const char* type = "deepnorm";
  static constexpr const char* doc =
      "N((2L)^(1/4) x + F(x)); v, out and feed-forward start with gain (8L)^(-1/4).";
  static constexpr const char* source = "Wang et al. 2022, arXiv 2203.00555";
  static PlacementRow row(const Depth& d) {
    if (d.decoder_blocks > 0) {
      const double both = std::pow(d.blocks, 4) * static_cast<double>(d.decoder_blocks);
      return {.norm_post = true,
              .alpha = 0.81 * std::pow(both, 1. / 16),
              .gain = 0.87 * std::pow(both, -1. / 16)};
    }
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
  static constexpr const char* doc =
      "N(n x + F(N(x))), n the branches of the stack (2L); the first block is x + F(N(x)).";
  static constexpr const char* source = "arXiv 2601.19895";
  static PlacementRow row(const Depth& d) {
    if (d.block == 1) return {.norm_in = true, .fixed_alpha = true};
    return {.norm_in = true, .norm_post = true, .alpha = d.total_branches()};
  }
};

struct ReZeroPlacement : PlacementOptions {
  static constexpr const char* type = "rezero";
  static constexpr const char* doc = "x + beta F(x) with a learned beta that starts at 0.";
  static constexpr const char* source = "Bachlechner et al. 2020, arXiv 2003.04887";
  static PlacementRow row(const Depth&) { return {.learned_beta = true}; }
};

struct MixPlacement : PlacementOptions {
  static constexpr const char* type = "mix";
  static constexpr const char* doc =
      "The first quarter of the blocks is post, the others pre; a norm after the last block.";
  static constexpr const char* source = "Mix-LN: Li et al. 2024, arXiv 2412.13795";
  static PlacementRow row(const Depth& d) {
    PlacementRow row = d.block <= d.blocks / 4 ? PostPlacement::row(d) : PrePlacement::row(d);
    row.final_norm = true;
    return row;
  }
};

struct ParallelPlacement : PlacementOptions {
  static constexpr const char* type = "parallel";
  static constexpr const char* doc =
      "x + A(N(x)) + F(N(x)), a norm each, and a norm after the last block.";
  static constexpr const char* source = "GPT-J, GPT-NeoX: Black et al. 2022, arXiv 2204.06745";
  static constexpr const char* refuses_cross_attention =
      "\"parallel\" has attention and feed-forward read the same; cross-attention between them "
      "would read nothing that has been attended to";
  static PlacementRow row(const Depth&) {
    return {.norm_in = true, .final_norm = true, .reads_block_input = true};
  }
};

struct B2tPlacement : PlacementOptions {
  static constexpr const char* type = "b2t";
  static constexpr const char* doc =
      "h = N(x + A(x)), then N(x + h + F(h)): post, with the block's input added at its end.";
  static constexpr const char* source = "Takase et al. 2022, arXiv 2206.00330";
  static PlacementRow row(const Depth& d) {
    return {.norm_post = true, .adds_block_input = d.branch == BranchKind::ffn};
  }
};

struct ResiDualPlacement : PlacementOptions {
  static constexpr const char* type = "resi_dual";
  static constexpr const char* doc =
      "x = N(x + F(x)) beside r = r + F(x), r starting as the embeddings; at the end x + N(r).";
  static constexpr const char* source = "Xie et al. 2023, arXiv 2304.14802";
  static PlacementRow row(const Depth&) {
    return {.norm_post = true, .final_norm = true, .second_stream = true};
  }
};

struct HybridPlacement : PlacementOptions {
  static constexpr const char* type = "hybrid";
  static constexpr const char* doc =
      "h = x + A(x) with RMSNorm on q, k, v; n = N(h); x = n + F(n); a norm after the last block.";
  static constexpr const char* source = "HybridNorm: Zhuo et al. 2025, arXiv 2503.04598";
  static constexpr const char* refuses_cross_attention =
      "\"hybrid\" norms the queries, keys and values of self-attention; for cross-attention it "
      "is not defined";
  static PlacementRow row(const Depth& d) {
    return {.final_norm = true,
            .norm_before = d.branch == BranchKind::ffn,
            .norm_heads = d.branch == BranchKind::attention};
  }
};

struct AdminPlacement : PlacementOptions {
  static constexpr const char* type = "admin";
  static constexpr const char* doc =
      "N(omega x + F(x)); omega starts at sqrt(1 + the variances of the branches before), which "
      "the first batch tells.";
  static constexpr const char* source = "Liu et al. 2020, arXiv 2004.08249";
  static PlacementRow row(const Depth&) { return {.norm_post = true, .omega = true}; }
};

struct NoPlacement : PlacementOptions {
  static constexpr const char* type = "none";
  static constexpr const char* doc = "x + F(x): no norm at all.";
  static constexpr const char* source = "the control";
  static PlacementRow row(const Depth&) { return {}; }
};

struct PlacementConfig
    : config::OneOf<PrePlacement, PostPlacement, DeepNormPlacement, SandwichPlacement,
                    PeriPlacement, OutputPlacement, LnsPlacement, KeelPlacement, ReZeroPlacement,
                    MixPlacement, ParallelPlacement, B2tPlacement, ResiDualPlacement,
                    HybridPlacement, AdminPlacement, NoPlacement> {
  static constexpr const char* family = "placement";
  static constexpr const char* family_doc =
      "x <- N_post(alpha x + beta N_out(F(N_in(x)))): where the norms stand in a block.";
  using OneOf::OneOf;

  // The row for a branch, with what the configuration overrides.
  [[nodiscard]] PlacementRow row(const Depth& depth) const;
  // Why it does not go into an encoder-decoder; empty where it does.
  [[nodiscard]] std::string_view refuses_cross_attention() const;
};

}  // namespace norma
