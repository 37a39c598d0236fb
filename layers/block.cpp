#include "layers/block.h"

#include <cmath>

#include "core/ops/arithmetic.h"
#include "core/ops/reduce.h"

namespace norma {
namespace {

// F itself.
LayerPtr make_function(BranchKind kind, const PlacementRow& row, const BlockOptions& options,
                       const Scope& scope, const Signature& in) {
  if (kind == BranchKind::ffn) {
    return std::make_unique<FeedForward>(options.feed_forward, scope.with_gain(row.gain), in);
  }
  AttentionConfig config = options.attention;
  AttentionParts parts{.value_gain = row.gain};
  if (row.norm_heads) {
    if (!config.qk_norm) config.qk_norm = QkNormConfig{};
    parts.value_norm = true;
  }
  if (kind == BranchKind::cross_attention) {
    config.causal = false;
    config.window.reset();
    config.position = NoPositionConfig{};
    parts.memory = options.memory;
  }
  return std::make_unique<Attention>(config, scope, in, parts);
}

}  // namespace

Block::Block(const BlockOptions& options, const Scope& scope, const Signature& in) : Module(scope) {
  add_branch(BranchKind::attention, options, scope, in);
  if (options.memory) add_branch(BranchKind::cross_attention, options, scope, in);
  add_branch(BranchKind::ffn, options, scope, in);
  for (Branch& branch : branches_) child(branch.name, *branch.f);
}

void Block::add_branch(BranchKind kind, const BlockOptions& options, const Scope& scope,
                       const Signature& in) {
  Branch branch;
  branch.name = name_of(kind);
  Depth depth = options.depth;
  depth.branch = kind;
  branch.row = options.placement.row(depth);
  const PlacementRow& row = branch.row;
  const auto norm = [&](bool wanted, const char* place, LayerPtr& into) {
    if (!wanted) return;
    into = options.norm.build(scope.child(branch.name + place), in);
    child(branch.name + place, *into);
  };
  norm(row.norm_in, "_norm", branch.norm_in);
  norm(row.norm_out, "_out_norm", branch.norm_out);
  norm(row.norm_post || row.norm_before, "_post_norm", branch.norm_post);
  if (row.learned_beta) {
    branch.beta = parameter(scope, branch.name + "_beta", Shape{1},
                            {.role = ParameterKind::constant, .value = 0});
  }
  if (row.omega) {
    branch.omega = parameter(scope, branch.name + "_omega", Shape{in.shape[-1]},
                             {.role = ParameterKind::constant, .value = 1});
  }
  branch.dropout =
      std::make_unique<Dropout>(scope.child(branch.name + "_dropout"), in, options.dropout);
  child(branch.name + "_dropout", *branch.dropout);
  branch.f = make_function(kind, row, options, scope.child(branch.name), in);
  branches_.push_back(std::move(branch));
}

bool Block::fuses_residual(const Branch& branch, const ResidualStream& stream,
                           const Forward& pass) {
  return branch.row.adds_plainly() && !branch.dropout->drops(pass) && !pass.observer &&
         !stream.variance;
}

void Block::run(const Branch& branch, const Tensor& block_input, ResidualStream& stream,
                const Forward& pass) const {
  const PlacementRow& row = branch.row;
  Tensor x = row.norm_before ? branch.norm_post->forward(stream.x, pass) : stream.x;
  Tensor f = row.reads_block_input ? block_input : x;
  if (row.norm_in) f = branch.norm_in->forward(f, pass);
  if (row.in_scale != 1) f = f * row.in_scale;
  if (fuses_residual(branch, stream, pass)) {
    x = branch.f->forward_onto(x, f, pass);
    stream.x = row.norm_post ? branch.norm_post->forward(x, pass) : x;
    return;
  }
  f = branch.f->forward(f, pass);
  if (row.norm_out) f = branch.norm_out->forward(f, pass);
  f = branch.dropout->forward(f, pass);
  if (row.learned_beta) f = f * branch.beta;
  if (pass.observer) pass.observer->branch(path() + "." + branch.name, f);
  if (stream.variance) {
    if (row.omega) Tensor(branch.omega).fill_(std::sqrt(*stream.variance));
    *stream.variance += var(f, {}, {.correction = 0}).item();
  }
  if (row.second_stream) stream.second = stream.second + f;
  if (row.alpha != 1) x = x * row.alpha;
  if (row.omega) x = x * branch.omega;
  if (row.adds_block_input) x = x + block_input;
  x = x + f;
  stream.x = row.norm_post ? branch.norm_post->forward(x, pass) : x;
}

ResidualStream Block::forward(ResidualStream stream, const Forward& pass) {
  const Tensor block_input = stream.x;
  for (const Branch& branch : branches_) run(branch, block_input, stream, pass);
  return stream;
}

}  // namespace norma
