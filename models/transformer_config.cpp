#include "models/transformer_config.h"

#include "core/config/sizes.h"

#include <algorithm>

namespace norma {

config::Fields TransformerConfig::fields() {
  using namespace config;
  using C = TransformerConfig;
  return {
      field("kind", &C::kind,
            "decoder: causal; encoder: every token sees all; encoder_decoder: a decoder that also "
            "reads an encoded source."),
      field("layers", &C::layers, "Number of blocks (in an encoder_decoder, of each side).",
            between(0, 1e4), also_called("n_layer n_layers num_layers num_hidden_layers depth")),
      field("encoder_layers", &C::encoder_layers, "Blocks of the encoder; null: `layers`.",
            between(0, 1e4)),
      field("decoder_layers", &C::decoder_layers, "Blocks of the decoder; null: `layers`.",
            between(0, 1e4)),
      field("width", &C::width, "Features of the residual stream.", a_size(), required(),
            also_called("d_model n_embd embed_dim hidden_size dim")),
      field("heads", &C::heads, "Heads of attention.", a_size(),
            also_called("n_head n_heads nhead num_heads num_attention_heads")),
      field("kv_heads", &C::kv_heads,
            "Key-value heads (grouped attention); null: as many as heads.", a_size(),
            also_called("n_kv_heads num_key_value_heads")),
      field("head_width", &C::head_width, "Features of a head; null: width / heads.", a_size()),
      field("hidden", &C::hidden, "Features inside the feed-forward; null: 4 width.", a_size(),
            also_called("d_ff dim_feedforward intermediate_size ffn_dim")),
      field("activation", &C::activation,
            "Activation of the feed-forward; gated ones have a gate."),
      field("norm", &C::norm, "The norm, in all places; or a list with one a block."),
      field("placement", &C::placement,
            "Where the norms stand in a block; or a list with one a block."),
      field("final_norm", &C::final_norm,
            "A norm after the last block; null: as the last block's placement has it."),
      field("qk_norm", &C::qk_norm, "A norm on queries and keys."),
      field("bias", &C::bias, "Biases in the products of the blocks (the head never has one)."),
      field("dropout", &C::dropout, "Dropout on the embeddings and on each branch.", at_least(0),
            at_most(1)),
      field("attention_dropout", &C::attention_dropout, "Dropout on the attention weights.",
            at_least(0), at_most(1)),
      field("tied", &C::tied, "The head is the transposed table of tokens.",
            also_called("tie_weights tie_embeddings tie_word_embeddings")),
      field("attention_softcap", &C::attention_softcap, "Logits of attention become c tanh(z / c).",
            above(0)),
      field("logit_softcap", &C::logit_softcap, "Final logits become c tanh(z / c).", above(0)),
      field("attention_scale", &C::attention_scale, "Factor on q k^T; null: 1 / sqrt(head width)."),
      field("window", &C::window,
            "Keys at a distance below w are seen; a number, or a list with one a block.",
            between(1, 1e9)),
      field("embedding_scale", &C::embedding_scale, "Factor on the embeddings, or \"sqrt_width\"."),
      field("embedding_norm", &C::embedding_norm, "The model's norm behind the embeddings."),
      field("position", &C::position, "How the order of the tokens is told."),
      field("init", &C::init,
            "How parameters start; null: xavier_normal in deepnorm, gpt2 where tied, else torch."),
      field("vocab", &C::vocab, "Number of token ids; checked against the data if given.",
            a_size()),
      field("context", &C::context, "Longest sequence; null: the data's.", a_size(),
            also_called("block_size n_positions max_seq_len seq_len"))};
}

namespace {

// One a block, or one for all.
template <class T>
const T& pick(const PerBlock<T>& value, std::size_t index) {
  // A side without blocks takes the last one, for its final norm.
  if (const auto* list = std::get_if<1>(&value)) return (*list)[std::min(index, list->size() - 1)];
  return std::get<0>(value);
}

template <class T>
void check_length(config::Problems& problems, const std::string& path, const T& value,
                  std::int64_t blocks) {
  const auto* list = std::get_if<1>(&value);
  if (!list || static_cast<std::int64_t>(list->size()) == blocks) return;
  problems.add(path, "expected a list with one a block, {} in all; got {}", blocks, list->size());
}

}  // namespace

void TransformerConfig::check(config::Problems& problems, const std::string& path) const {
  const auto at = [&](const char* key) { return config::join(path, key); };
  const std::size_t before = problems.size();
  if (kind == TransformerKind::encoder_decoder) {
    if (!layers && !encoder_layers)
      problems.add(at("encoder_layers"), "missing; expected the number of blocks");
    if (!layers && !decoder_layers)
      problems.add(at("decoder_layers"), "missing; expected the number of blocks");
  } else {
    if (!layers) problems.add(at("layers"), "missing; expected the number of blocks");
    for (const auto& [key, given] : {std::pair{"encoder_layers", encoder_layers.has_value()},
                                     std::pair{"decoder_layers", decoder_layers.has_value()}}) {
      if (given) problems.add(at(key), "only an encoder_decoder has it; give layers");
    }
  }
  if (!head_width && width % heads != 0) {
    problems.add(at("heads"),
                 "{} heads do not divide the width of {}; give head_width, or other heads", heads,
                 width);
  }
  if (kv_heads && heads % *kv_heads != 0) {
    problems.add(at("kv_heads"), "{} key-value heads do not divide {} heads", *kv_heads, heads);
  }
  const std::int64_t head = head_width.value_or(width / heads);
  if (position.get_if<RopePositionConfig>() && head % 2 != 0) {
    problems.add(at("position"), "rope turns pairs of features; the head width of {} is odd", head);
  }
  if (problems.size() > before) return;  // what follows counts the blocks
  check_length(problems, at("norm"), norm, all_blocks());
  if (norm.index() == 1 && all_blocks() == 0) {
    problems.add(at("norm"), "expected one norm, since there are no blocks; got a list");
  }
  check_length(problems, at("placement"), placement, all_blocks());
  if (window) check_length(problems, at("window"), *window, all_blocks());
  if (problems.size() > before) return;
  for (const Side side : sides()) {
    for (std::int64_t i = 0; i < blocks(side); ++i) {
      const PlacementConfig& p = placement_of(side, i);
      if (kind == TransformerKind::encoder_decoder && !p.refuses_cross_attention().empty()) {
        problems.add(at("placement"), "an encoder_decoder cannot have it: {}",
                     p.refuses_cross_attention());
        return;
      }
      if (row(side, i, BranchKind::attention).second_stream != has_second_stream(side)) {
        problems.add(at("placement"),
                     "resi_dual has a second stream through all blocks; give it to each, or none");
        return;
      }
    }
  }
}

std::vector<Side> TransformerConfig::sides() const {
  if (kind == TransformerKind::encoder_decoder) return {Side::encoder, Side::decoder};
  return {Side::only};
}

std::int64_t TransformerConfig::blocks(Side side) const {
  const std::int64_t both = layers.value_or(0);
  if (side == Side::encoder) return encoder_layers.value_or(both);
  if (side == Side::decoder) return decoder_layers.value_or(both);
  return both;
}

std::int64_t TransformerConfig::all_blocks() const {
  std::int64_t n = 0;
  for (const Side side : sides()) n += blocks(side);
  return n;
}

bool TransformerConfig::causal(Side side) const {
  return side == Side::decoder || (side == Side::only && kind == TransformerKind::decoder);
}

std::size_t TransformerConfig::position_in_lists(Side side, std::int64_t index) const {
  return static_cast<std::size_t>(index + (side == Side::decoder ? blocks(Side::encoder) : 0));
}

Depth TransformerConfig::depth(Side side, std::int64_t index) const {
  return {.block = index + 1,
          .blocks = blocks(side),
          .branches = side == Side::decoder ? 3 : 2,
          .decoder_blocks = side == Side::encoder ? blocks(Side::decoder) : 0};
}

const PlacementConfig& TransformerConfig::placement_of(Side side, std::int64_t index) const {
  return pick(placement, position_in_lists(side, index));
}

const NormConfig& TransformerConfig::norm_of(Side side, std::int64_t index) const {
  return pick(norm, position_in_lists(side, index));
}

std::optional<std::int64_t> TransformerConfig::window_of(Side side, std::int64_t index) const {
  if (!window) return std::nullopt;
  if (const auto* one = std::get_if<0>(&*window)) return *one;
  return std::get<1>(*window).at(position_in_lists(side, index));
}

PlacementRow TransformerConfig::row(Side side, std::int64_t index, BranchKind branch) const {
  Depth at = depth(side, index);
  at.branch = branch;
  return placement_of(side, index).row(at);
}

bool TransformerConfig::has_final_norm(Side side) const {
  if (final_norm) return *final_norm;
  if (blocks(side) == 0 && placement.index() == 1) return false;
  return row(side, std::max<std::int64_t>(0, blocks(side) - 1), BranchKind::ffn).final_norm;
}

bool TransformerConfig::has_second_stream(Side side) const {
  return blocks(side) > 0 && row(side, blocks(side) - 1, BranchKind::ffn).second_stream;
}

bool TransformerConfig::is_profiled() const {
  for (const Side side : sides()) {
    for (std::int64_t i = 0; i < blocks(side); ++i) {
      if (row(side, i, BranchKind::attention).omega) return true;
    }
  }
  return false;
}

InitConfig TransformerConfig::resolved_init() const {
  if (init) return *init;
  for (const Side side : sides()) {
    for (std::int64_t i = 0; i < blocks(side); ++i) {
      if (placement_of(side, i).get_if<DeepNormPlacement>()) return XavierNormalInit{};
    }
  }
  if (tied) return Gpt2Init{};
  return TorchInit{};
}

}  // namespace norma
