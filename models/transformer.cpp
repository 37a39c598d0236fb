#include "models/transformer.h"

#include <cmath>

#include "core/ops/arithmetic.h"
#include "core/ops/linear.h"
#include "core/ops/math.h"
#include "core/ops/movement.h"

namespace norma {

config::Fields TransformerConfig::fields() {
  using namespace config;
  using C = TransformerConfig;
  return {
      field("kind", &C::kind, "decoder: causal; encoder: every token sees all."),
      field("layers", &C::layers, "Number of blocks.", at_least(0), required()),
      field("width", &C::width, "Features of the residual stream.", at_least(1), required()),
      field("heads", &C::heads, "Heads of attention.", at_least(1)),
      field("kv_heads", &C::kv_heads,
            "Key-value heads (grouped attention); null: as many as heads.", at_least(1)),
      field("head_width", &C::head_width, "Features of a head; null: width / heads.", at_least(1)),
      field("hidden", &C::hidden, "Features inside the feed-forward; null: 4 width.", at_least(1)),
      field("activation", &C::activation,
            "Activation of the feed-forward; gated ones have a gate."),
      field("norm", &C::norm, "The norm, in all places."),
      field("placement", &C::placement, "Where the norms stand in a block."),
      field("final_norm", &C::final_norm,
            "A norm after the last block; null: as the placement has it."),
      field("qk_norm", &C::qk_norm, "A norm on queries and keys."),
      field("bias", &C::bias, "Biases in the products of the blocks (the head never has one)."),
      field("dropout", &C::dropout, "Dropout on the embeddings and on each branch.", at_least(0),
            at_most(1)),
      field("attention_dropout", &C::attention_dropout, "Dropout on the attention weights.",
            at_least(0), at_most(1)),
      field("tied", &C::tied, "The head is the transposed table of tokens."),
      field("attention_softcap", &C::attention_softcap, "Logits of attention become c tanh(z / c).",
            above(0)),
      field("logit_softcap", &C::logit_softcap, "Final logits become c tanh(z / c).", above(0)),
      field("attention_scale", &C::attention_scale, "Factor on q k^T; null: 1 / sqrt(head width)."),
      field("window", &C::window, "Keys at a distance below w are seen; a number, or one a layer.",
            between(1, 1e9)),
      field("embedding_scale", &C::embedding_scale, "Factor on the embeddings, or \"sqrt_width\"."),
      field("embedding_norm", &C::embedding_norm, "The model's norm behind the embeddings."),
      field("position", &C::position, "How the order of the tokens is told."),
      field("init", &C::init,
            "How parameters start; null: gpt2 where tied, xavier_normal in deepnorm, else torch."),
      field("vocab", &C::vocab, "Number of token ids; checked against the data if given.",
            at_least(1)),
      field("context", &C::context, "Longest sequence; null: the data's.", at_least(1))};
}

void TransformerConfig::check(config::Problems& problems, const std::string& path) const {
  const auto at = [&](const char* key) { return config::join(path, key); };
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
  if (window) {
    if (const auto* list = std::get_if<1>(&*window);
        list && static_cast<std::int64_t>(list->size()) != layers) {
      problems.add(at("window"), "expected one window a layer, {} in all; got {}", layers,
                   list->size());
    }
  }
}

Depth TransformerConfig::depth(std::int64_t index) const {
  return {.block = index + 1, .blocks = layers, .branches = 2};
}

bool TransformerConfig::has_final_norm() const {
  return final_norm.value_or(
      placement.row(depth(std::max<std::int64_t>(0, layers - 1))).final_norm);
}

InitConfig TransformerConfig::resolved_init() const {
  if (init) return *init;
  if (placement.get_if<DeepNormPlacement>()) return XavierNormalInit{};
  if (tied) return Gpt2Init{};
  return TorchInit{};
}

std::optional<std::int64_t> TransformerConfig::window_of(std::int64_t index) const {
  if (!window) return std::nullopt;
  if (const auto* one = std::get_if<0>(&*window)) return *one;
  return std::get<1>(*window)[static_cast<std::size_t>(index)];
}

ModelPtr TransformerConfig::build(std::uint64_t seed, const Signature& in, DType dtype) const {
  return std::make_unique<Transformer>(*this, Scope(seed, resolved_init(), dtype), in);
}

namespace {

std::int64_t checked_vocab(const TransformerConfig& config, const Signature& in) {
  require(in.vocab > 0, "transformer: expected ids; the data {} holds numbers", in.shape);
  require(in.shape.rank() == 1, "transformer: expected sequences of ids; got samples of shape {}",
          in.shape);
  require(!config.vocab || *config.vocab >= in.vocab,
          "transformer: `vocab` is {}; the data has {} ids", config.vocab.value_or(0), in.vocab);
  return config.vocab.value_or(in.vocab);
}

std::int64_t checked_context(const TransformerConfig& config, const Signature& in) {
  const std::int64_t length = in.shape[0];
  require(!config.context || *config.context >= length,
          "transformer: `context` is {}; the data's sequences have {} tokens",
          config.context.value_or(0), length);
  return config.context.value_or(length);
}

Signature logits_of(const TransformerConfig& config, const Signature& in) {
  return {
      .shape = Shape{in.shape[0], checked_vocab(config, in)}, .vocab = 0, .features_last = true};
}

}  // namespace

Transformer::Transformer(const TransformerConfig& config, const Scope& scope, const Signature& in)
    : Model(scope, logits_of(config, in)),
      config_(config),
      context_(checked_context(config, in)),
      tokens_(scope.child("tokens"), in.shape, checked_vocab(config, in), config.width) {
  const Signature stream{
      .shape = Shape{in.shape[0], config.width}, .vocab = 0, .features_last = true};
  child("tokens", tokens_);
  if (config.embedding_scale) {
    embedding_scale_ = config.embedding_scale->index() == 0
                           ? std::get<0>(*config.embedding_scale)
                           : std::sqrt(static_cast<double>(config.width));
  }
  if (config.position.get_if<LearnedPositionConfig>()) {
    positions_ =
        std::make_unique<Embedding>(scope.child("positions"), in.shape, context_, config.width);
    child("positions", *positions_);
  } else if (config.position.get_if<SinusoidalPositionConfig>()) {
    sinusoids_ = sinusoidal_table(context_, config.width, scope.dtype());
  }
  if (const auto* relative = config.position.get_if<RelativePositionConfig>()) {
    const Direction direction =
        config.kind == TransformerKind::decoder ? Direction::causal : Direction::both;
    relative_ =
        std::make_unique<RelativeBias>(*relative, config.heads, direction, scope.child("relative"));
    child("relative", *relative_);
  }
  if (config.embedding_norm) {
    embedding_norm_ = config.norm.build(scope.child("embedding_norm"), stream);
    child("embedding_norm", *embedding_norm_);
  }
  dropout_ = std::make_unique<Dropout>(scope.child("dropout"), stream, config.dropout);
  child("dropout", *dropout_);

  BlockOptions options;
  options.attention.heads = config.heads;
  options.attention.kv_heads = config.kv_heads;
  options.attention.head_width = config.head_width;
  options.attention.causal = config.kind == TransformerKind::decoder;
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
  options.norm = config.norm;
  options.placement = config.placement;
  options.dropout = config.dropout;
  const Scope inner = scope.with_branches(2 * config.layers);
  for (std::int64_t i = 0; i < config.layers; ++i) {
    options.depth = config.depth(i);
    options.attention.window = config.window_of(i);
    const std::string name = fmt::format("blocks.{}", i);
    blocks_.push_back(std::make_unique<Block>(options, inner.child(name), stream));
    child(name, *blocks_.back());
  }
  if (config.has_final_norm()) {
    norm_ = config.norm.build(scope.child("norm"), stream);
    child("norm", *norm_);
  }
  if (!config.tied) {
    head_ = std::make_unique<Linear>(
        scope.child("head"), stream.shape, output().shape[-1],
        Linear::Options{.bias = false, .role = ParameterKind::head, .features_last = true});
    child("head", *head_);
  }
}

Tensor Transformer::embed(const Tensor& ids, const Forward& pass) {
  require(ids.rank() == 2, "transformer: expected ids of shape (B, T); got {}", ids.shape());
  const std::int64_t length = ids.size(1);
  require(length <= context_,
          "transformer: a sequence of {} tokens is longer than the context of {}", length,
          context_);
  Tensor x = tokens_.forward(ids, pass);
  if (embedding_scale_ != 1) x = x * embedding_scale_;
  if (positions_) {
    x = x + positions_->forward(Tensor::arange(length), pass);
  } else if (sinusoids_.defined()) {
    x = x + slice(sinusoids_, 0, 0, length);
  }
  if (embedding_norm_) x = embedding_norm_->forward(x, pass);
  return dropout_->forward(x, pass);
}

Forward Transformer::with_bias(const Forward& pass, std::int64_t length) {
  Forward inner = pass;
  if (relative_) inner.attention_bias = relative_->forward(length, length);
  return inner;
}

Tensor Transformer::forward(const Tensor& ids, const Forward& pass) {
  Tensor x = embed(ids, pass);
  const Forward inner = with_bias(pass, ids.size(1));
  for (const auto& block : blocks_) x = block->forward(x, inner);
  if (norm_) x = norm_->forward(x, pass);
  Tensor logits = head_ ? head_->forward(x, pass) : linear(x, tokens_.weight());
  if (config_.logit_softcap) {
    logits = tanh(logits * (1 / *config_.logit_softcap)) * *config_.logit_softcap;
  }
  return logits;
}

std::vector<Tensor> Transformer::residual_stream(const Tensor& ids, const Forward& pass) {
  std::vector<Tensor> stream{embed(ids, pass)};
  const Forward inner = with_bias(pass, ids.size(1));
  for (const auto& block : blocks_) stream.push_back(block->forward(stream.back(), inner));
  return stream;
}

}  // namespace norma
