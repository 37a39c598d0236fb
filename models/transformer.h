// Transformer: embeddings, blocks, a final norm and a head.
#pragma once

#include <variant>

#include "layers/block.h"
#include "layers/embedding.h"
#include "models/model.h"

namespace norma {

enum class TransformerKind : std::uint8_t { decoder, encoder };
constexpr auto config_names(TransformerKind) {
  return std::to_array<std::string_view>({"decoder", "encoder"});
}
enum class EmbeddingScale : std::uint8_t { sqrt_width };
constexpr auto config_names(EmbeddingScale) {
  return std::to_array<std::string_view>({"sqrt_width"});
}

// One window for all layers, or a list with one a layer (null: no window).
using WindowConfig = std::variant<std::int64_t, std::vector<std::optional<std::int64_t>>>;

struct TransformerConfig {
  static constexpr const char* type = "transformer";
  static constexpr const char* doc = "Embeddings, blocks of attention and feed-forward, a head.";
  static constexpr const char* source = "Vaswani et al. 2017, arXiv 1706.03762";
  TransformerKind kind = TransformerKind::decoder;
  std::int64_t layers = 0;
  std::int64_t width = 0;
  std::int64_t heads = 1;
  std::optional<std::int64_t> kv_heads;
  std::optional<std::int64_t> head_width;
  std::optional<std::int64_t> hidden;
  FeedForwardActivation activation = GeluConfig{};
  NormConfig norm = LayerNormConfig{};
  PlacementConfig placement = PrePlacement{};
  std::optional<bool> final_norm;
  std::optional<QkNormConfig> qk_norm;
  bool bias = true;
  double dropout = 0;
  double attention_dropout = 0;
  bool tied = false;
  std::optional<double> attention_softcap;
  std::optional<double> logit_softcap;
  std::optional<double> attention_scale;
  std::optional<WindowConfig> window;
  std::optional<std::variant<double, EmbeddingScale>> embedding_scale;
  bool embedding_norm = false;
  PositionConfig position = LearnedPositionConfig{};
  std::optional<InitConfig> init;
  std::optional<std::int64_t> vocab;
  std::optional<std::int64_t> context;
  static config::Fields fields();
  void check(config::Problems& problems, const std::string& path) const;
  [[nodiscard]] ModelPtr build(std::uint64_t seed, const Signature& in,
                               DType dtype = DType::f32) const;

  // Where block `index` (from 0) stands.
  [[nodiscard]] Depth depth(std::int64_t index) const;
  [[nodiscard]] bool has_final_norm() const;
  [[nodiscard]] std::int64_t hidden_width() const { return hidden.value_or(4 * width); }
  // The rule that runs: the given one, or the placement's and the model's default.
  [[nodiscard]] InitConfig resolved_init() const;
  [[nodiscard]] std::optional<std::int64_t> window_of(std::int64_t index) const;
};

// x = scale * tokens[ids] (+ positions) -> dropout -> blocks -> norm -> head (tokens^T where tied,
// never with a bias) -> c tanh(x / c) where `logit_softcap`.
// Shapes: ids (B, T) i64, T <= context; result (B, T, vocab).
// Names: tokens, positions, embedding_norm, blocks.I, norm, head.
class Transformer final : public Model {
 public:
  Transformer(const TransformerConfig& config, const Scope& scope, const Signature& in);
  [[nodiscard]] Tensor forward(const Tensor& ids, const Forward& pass) override;
  // The residual stream before the first block and after each, for probes.
  [[nodiscard]] std::vector<Tensor> residual_stream(const Tensor& ids, const Forward& pass);

 private:
  [[nodiscard]] Tensor embed(const Tensor& ids, const Forward& pass);
  // The pass of the blocks: with the bias of relative positions.
  [[nodiscard]] Forward with_bias(const Forward& pass, std::int64_t length);

  TransformerConfig config_;
  std::int64_t context_;
  double embedding_scale_ = 1;
  Embedding tokens_;
  std::unique_ptr<Embedding> positions_;
  Tensor sinusoids_;
  std::unique_ptr<RelativeBias> relative_;
  LayerPtr embedding_norm_;
  std::unique_ptr<Dropout> dropout_;
  std::vector<std::unique_ptr<Block>> blocks_;
  LayerPtr norm_;
  std::unique_ptr<Linear> head_;
};

}  // namespace norma
