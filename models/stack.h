// Stack: the blocks of a transformer, one behind the other, and what follows the last.
#pragma once

#include "layers/block.h"
#include "models/transformer_config.h"

namespace norma {

// x -> blocks -> N(x) where there is a final norm; in `resi_dual` x + N(r), r the second stream.
// Shapes: (B, T, C) to (B, T, C). Names: blocks.I, norm; relative (T5's table, shared by the
// blocks).
// Tells the observer of the stream at "embedding" (what comes in) and "blocks.I" (what leaves
// block I), of the branches at "blocks.I.ffn" and so on; before each stands the stack's path.
class Stack final : public Module {
 public:
  Stack(const TransformerConfig& config, Side side, const Scope& scope, const Signature& in);
  [[nodiscard]] Tensor forward(const Tensor& x, const Forward& pass);
  // A forward that fills what the first batch tells: see Note [Profiling] in layers/block.h.
  [[nodiscard]] Tensor profile(const Tensor& x, const Forward& pass);

 private:
  [[nodiscard]] Tensor run(ResidualStream stream, const Forward& pass);
  [[nodiscard]] static ResidualStream through(Block& block, ResidualStream stream,
                                              const Forward& pass);
  void observe(const Forward& pass, const std::string& place, const Tensor& x) const;

  bool second_stream_;
  std::unique_ptr<RelativeBias> relative_;
  std::vector<std::unique_ptr<Block>> blocks_;
  LayerPtr norm_;
};

}  // namespace norma
