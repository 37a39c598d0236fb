// What a transformer is made of, and where each of its blocks stands.
#pragma once

#include <variant>

#include "layers/block.h"
#include "models/model.h"

namespace norma {

enum class TransformerKind : std::uint8_t { decoder, encoder, encoder_decoder };
constexpr auto config_names(TransformerKind) {
  return std::to_array<std::string_view>({"decoder", "encoder", "encoder_decoder"});
}
enum class EmbeddingScale : std::uint8_t { sqrt_width };
constexpr auto config_names(EmbeddingScale) {
  return std::to_array<std::string_view>({"sqrt_width"});
}

// Which stack of blocks: the only one of a decoder or an encoder, or one side of an
// encoder-decoder.
enum class Side : std::uint8_t { only, encoder, decoder };

// One for all blocks, or a list with one a block (an encoder-decoder's encoder first).
template <class T>
using PerBlock = std::variant<T, std::vector<T>>;
using WindowConfig = std::variant<std::int64_t, std::vector<std::optional<std::int64_t>>>;

struct TransformerConfig {
  static constexpr const char* type = "transformer";
  static constexpr const char* doc = "Embeddings, blocks of attention and feed-forward, a head.";
  static constexpr const char* source = "Vaswani et al. 2017, arXiv 1706.03762";
  TransformerKind kind = TransformerKind::decoder;
  std::optional<std::int64_t> layers;
  std::optional<std::int64_t> encoder_layers;
  std::optional<std::int64_t> decoder_layers;
  std::int64_t width = 0;
  std::int64_t heads = 1;
  std::optional<std::int64_t> kv_heads;
  std::optional<std::int64_t> head_width;
  std::optional<std::int64_t> hidden;
  FeedForwardActivation activation = GeluConfig{};
  PerBlock<NormConfig> norm = NormConfig(LayerNormConfig{});
  PerBlock<PlacementConfig> placement = PlacementConfig(PrePlacement{});
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

  // {only}, or {encoder, decoder}.
  [[nodiscard]] std::vector<Side> sides() const;
  // The number of blocks of a stack.
  [[nodiscard]] std::int64_t blocks(Side side) const;
  // True iff its tokens see no later ones.
  [[nodiscard]] bool causal(Side side) const;
  // Where block `index` (from 0) of a stack stands, and what it has.
  [[nodiscard]] Depth depth(Side side, std::int64_t index) const;
  [[nodiscard]] const PlacementConfig& placement_of(Side side, std::int64_t index) const;
  [[nodiscard]] const NormConfig& norm_of(Side side, std::int64_t index) const;
  [[nodiscard]] std::optional<std::int64_t> window_of(Side side, std::int64_t index) const;
  // The row of the table for a branch of it.
  [[nodiscard]] PlacementRow row(Side side, std::int64_t index, BranchKind branch) const;
  // True iff the first batch of a run tells a block something: see Note [Profiling] in
  // layers/block.h.
  [[nodiscard]] bool is_profiled() const;
  // What follows the last block of a stack.
  [[nodiscard]] bool has_final_norm(Side side) const;
  [[nodiscard]] bool has_second_stream(Side side) const;

  [[nodiscard]] std::int64_t hidden_width() const { return hidden.value_or(4 * width); }
  // The rule that runs: the given one, or the placement's and the model's default.
  [[nodiscard]] InitConfig resolved_init() const;

 private:
  [[nodiscard]] std::int64_t all_blocks() const;
  [[nodiscard]] std::size_t position_in_lists(Side side, std::int64_t index) const;
};

}  // namespace norma
