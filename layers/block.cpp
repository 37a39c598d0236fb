#include "layers/block.h"

#include "core/ops/arithmetic.h"

namespace norma {

Block::Block(const BlockOptions& options, const Scope& scope, const Signature& in)
    : Layer(scope, in),
      row_(options.placement.row(options.depth)),
      attention_branch_(make_branch("attention", options, scope, in)),
      ffn_branch_(make_branch("ffn", options, scope, in)),
      attention_(options.attention, scope.child("attention"), in, {.value_gain = row_.gain}),
      ffn_(options.feed_forward, scope.child("ffn").with_gain(row_.gain), in) {
  child("attention", attention_);
  child("ffn", ffn_);
}

Block::Branch Block::make_branch(const std::string& name, const BlockOptions& options,
                                 const Scope& scope, const Signature& in) {
  Branch branch;
  const auto norm = [&](bool wanted, const std::string& part, LayerPtr& into) {
    if (!wanted) return;
    into = options.norm.build(scope.child(part), in);
    child(part, *into);
  };
  norm(row_.norm_in, name + "_norm", branch.norm_in);
  norm(row_.norm_out, name + "_out_norm", branch.norm_out);
  norm(row_.norm_post, name + "_post_norm", branch.norm_post);
  if (row_.learned_beta) {
    branch.beta =
        parameter(scope, name + "_beta", Shape{1}, {.role = ParameterKind::constant, .value = 0});
  }
  branch.dropout = std::make_unique<Dropout>(scope.child(name + "_dropout"), in, options.dropout);
  child(name + "_dropout", *branch.dropout);
  return branch;
}

Tensor Block::run(const Branch& branch, Layer& f, const Tensor& x, const Forward& pass) const {
  Tensor h = branch.norm_in ? branch.norm_in->forward(x, pass) : x;
  if (row_.in_scale != 1) h = h * row_.in_scale;
  h = f.forward(h, pass);
  if (branch.norm_out) h = branch.norm_out->forward(h, pass);
  h = branch.dropout->forward(h, pass);
  if (branch.beta.defined()) h = h * branch.beta;
  const Tensor y = (row_.alpha == 1 ? x : x * row_.alpha) + h;
  return branch.norm_post ? branch.norm_post->forward(y, pass) : y;
}

Tensor Block::forward(const Tensor& x, const Forward& pass) {
  return run(ffn_branch_, ffn_, run(attention_branch_, attention_, x, pass), pass);
}

}  // namespace norma
