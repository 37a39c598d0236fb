// Block: residual branches, one behind the other, laid out by the placement.
#pragma once

#include "layers/attention.h"
#include "layers/dropout.h"
#include "layers/feed_forward.h"
#include "layers/placements.h"

namespace norma {

struct BlockOptions {
  AttentionConfig attention;
  FeedForward::Options feed_forward;
  NormConfig norm;
  PlacementConfig placement;
  Depth depth;
  double dropout = 0;
  // (S, C) of what cross-attention reads, between the two branches; absent: there is none.
  std::optional<Shape> memory;
};

// What flows from block to block.
struct ResidualStream {
  Tensor x;       // (B, T, C)
  Tensor second;  // r of `resi_dual`; else empty
  // While profiling, 1 + the variances of the branches so far. See Note [Profiling].
  std::optional<double> variance = {};
};

// Note [Profiling]. `admin` has N(omega x + F(x)) with omega_i = sqrt(1 + sum over the branches j
// before of Var F_j): the variance that x would have without norms, the 1 being the embeddings'.
// One forward over the first batch, without dropout, fills each omega as it comes to it. After it,
// omega is a parameter like the others, learned and saved. Source: Liu et al. 2020, arXiv
// 2004.08249.

// For each branch F, with b what came into the block, and each part where the placement has it:
//
//   x <- N_post(x)                                               norm_before
//   f = beta dropout(N_out(F(in_scale N_in(x))))                 F reads b: reads_block_input
//   r <- r + f                                                   second_stream
//   x <- N_post(alpha omega x + b + f)                           b: adds_block_input
//
// See layers/placements.h. Names: attention, cross_attention, ffn; before _norm (N_in), _out_norm,
// _post_norm, _beta (1), _omega (C) each of these.
class Block final : public Module {
 public:
  Block(const BlockOptions& options, const Scope& scope, const Signature& in);
  [[nodiscard]] ResidualStream forward(ResidualStream stream, const Forward& pass);

 private:
  // One F, and the norms, factors and dropout around it.
  struct Branch {
    std::string name;
    PlacementRow row;
    LayerPtr f, norm_in, norm_out, norm_post;
    Tensor beta, omega;  // learned, or empty
    std::unique_ptr<Dropout> dropout;
  };
  void add_branch(BranchKind kind, const BlockOptions& options, const Scope& scope,
                  const Signature& in);
  // True where F's last product may add x: nothing comes between F and the sum, and nobody asks for
  // what F adds. The bits are the same.
  [[nodiscard]] static bool fuses_residual(const Branch& branch, const ResidualStream& stream,
                                           const Forward& pass);
  void run(const Branch& branch, const Tensor& block_input, ResidualStream& stream,
           const Forward& pass) const;

  std::vector<Branch> branches_;
};

}  // namespace norma
