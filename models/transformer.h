// Transformer: embeddings, one stack of blocks or two, and a head.
#pragma once

#include "layers/embedding.h"
#include "models/stack.h"

namespace norma {

// A decoder or an encoder:
//   x = scale * tokens[ids] (+ positions) -> embedding_norm -> dropout -> stack -> head
// An encoder-decoder: the source goes through the encoder's stack, and the decoder's reads what
// comes out, in cross-attention between its attention and its feed-forward; tokens, positions and
// embedding_norm are the same for both. The head is tokens^T where tied, never with a bias; then
// c tanh(x / c) where `logit_softcap`.
// Shapes: ids (B, T) i64, T <= context; pass.source (B, S) i64, pass.source_mask (B, S); result
// (B, T, vocab).
// Names: tokens, positions, embedding_norm, those of the stack (blocks.I, norm; with encoder. or
// decoder. before them where there are two), head.
class Transformer final : public Model {
 public:
  Transformer(const TransformerConfig& config, const Scope& scope, const Signature& in);
  [[nodiscard]] Tensor forward(const Tensor& ids, const Forward& pass) override;
  bool profile(const Tensor& ids, const Forward& pass) override;
  // What is causal goes on from a cache, unless a norm looks at other tokens. An encoder-decoder
  // reads the source in the first pass, and keeps what its decoder needs of it.
  [[nodiscard]] Continues continues() const override;

 private:
  using Run = Tensor (Stack::*)(const Tensor& x, const Forward& pass);
  [[nodiscard]] Tensor embed(const Tensor& ids, const Forward& pass);
  // The encoder's output.
  [[nodiscard]] Tensor read_source(const Forward& pass, Run run);
  // The features that the head reads.
  [[nodiscard]] Tensor features(const Tensor& ids, const Forward& pass, Run run);

  TransformerConfig config_;
  std::int64_t context_;
  double embedding_scale_ = 1;
  Embedding tokens_;
  std::unique_ptr<Embedding> positions_;
  Tensor sinusoids_;
  LayerPtr embedding_norm_;
  std::unique_ptr<Dropout> dropout_;
  std::unique_ptr<Stack> encoder_;  // of an encoder-decoder
  std::unique_ptr<Stack> stack_;    // its decoder, or the only stack
  std::unique_ptr<Linear> head_;
};

}  // namespace norma
