#include "models/stack.h"

#include "core/ops/arithmetic.h"
#include "layers/recomputed.h"

namespace norma {
namespace {

// What all blocks of a stack share.
BlockOptions block_options(const TransformerConfig& config, Side side, const Signature& in) {
  BlockOptions options;
  options.attention.heads = config.heads;
  options.attention.kv_heads = config.kv_heads;
  options.attention.head_width = config.head_width;
  options.attention.causal = config.causal(side);
  options.attention.bias = config.bias;
  options.attention.qk_norm = config.qk_norm;
  options.attention.softcap = config.attention_softcap;
  options.attention.scale = config.attention_scale;
  options.attention.dropout = config.attention_dropout;
  if (config.position.get_if<RopePositionConfig>() ||
      config.position.get_if<AlibiPositionConfig>()) {
    options.attention.position = config.position;
  }
  options.feed_forward = {
      .hidden = config.hidden_width(), .activation = config.activation, .bias = config.bias};
  options.dropout = config.dropout;
  if (side == Side::decoder) options.memory = Shape{in.source.numel(), config.width};
  return options;
}

}  // namespace

Stack::Stack(const TransformerConfig& config, Side side, const Scope& scope, const Signature& in)
    : Module(scope), second_stream_(config.has_second_stream(side)) {
  if (const auto* relative = config.position.get_if<RelativePositionConfig>()) {
    relative_ = std::make_unique<RelativeBias>(
        *relative, config.heads, config.causal(side) ? Direction::causal : Direction::both,
        scope.child("relative"));
    child("relative", *relative_);
  }
  const std::int64_t blocks = config.blocks(side);
  const Scope inner = scope.with_branches(config.depth(side, 0).branches * blocks);
  BlockOptions options = block_options(config, side, in);
  for (std::int64_t i = 0; i < blocks; ++i) {
    options.depth = config.depth(side, i);
    options.norm = config.norm_of(side, i);
    options.placement = config.placement_of(side, i);
    options.attention.window = config.window_of(side, i);
    const std::string name = fmt::format("blocks.{}", i);
    blocks_.push_back(std::make_unique<Block>(options, inner.child(name), in));
    child(name, *blocks_.back());
  }
  if (config.has_final_norm(side)) {
    norm_ =
        config.norm_of(side, std::max<std::int64_t>(0, blocks - 1)).build(scope.child("norm"), in);
    child("norm", *norm_);
  }
}

void Stack::observe(const Forward& pass, const std::string& place, const Tensor& x) const {
  if (pass.observer) pass.observer->stream(path().empty() ? place : path() + "." + place, x);
}

ResidualStream Stack::through(Block& block, ResidualStream stream, const Forward& pass) {
  if (!pass.recompute || stream.variance) return block.forward(std::move(stream), pass);
  std::vector<Tensor> inputs{stream.x};
  if (stream.second.defined()) inputs.push_back(stream.second);
  const BlockForward forward = [&block](std::span<const Tensor> in, const Forward& p) {
    const bool two = in.size() > 1;
    const ResidualStream out = block.forward({.x = in[0], .second = two ? in[1] : Tensor()}, p);
    return two ? std::vector<Tensor>{out.x, out.second} : std::vector<Tensor>{out.x};
  };
  const std::vector<Tensor> out = recomputed(block, forward, inputs, pass);
  return {.x = out[0], .second = out.size() > 1 ? out[1] : Tensor()};
}

Tensor Stack::run(ResidualStream stream, const Forward& pass) {
  Forward inner = pass;
  if (relative_) {
    const std::int64_t length = stream.x.size(1);
    const std::int64_t before = pass.cache ? pass.cache->length : 0;
    inner.attention_bias = relative_->forward(length, before + length);
  }
  if (second_stream_) stream.second = stream.x;
  observe(pass, "embedding", stream.x);
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    stream = through(*blocks_[i], std::move(stream), inner);
    if (pass.observer) observe(pass, fmt::format("blocks.{}", i), stream.x);
  }
  if (second_stream_) {
    return stream.x + (norm_ ? norm_->forward(stream.second, pass) : stream.second);
  }
  return norm_ ? norm_->forward(stream.x, pass) : stream.x;
}

Tensor Stack::forward(const Tensor& x, const Forward& pass) {
  return run({.x = x, .second = {}}, pass);
}

Tensor Stack::profile(const Tensor& x, const Forward& pass) {
  return run({.x = x, .second = {}, .variance = 1}, pass);
}

}  // namespace norma
