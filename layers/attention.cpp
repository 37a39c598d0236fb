#include "layers/attention.h"

#include <array>
#include <span>

#include "core/config/sizes.h"
#include "core/ops/arithmetic.h"
#include "core/ops/cast.h"
#include "core/ops/linear.h"
#include "core/ops/movement.h"

namespace norma {

config::Fields QkNormConfig::fields() {
  using namespace config;
  return {
      field("norm", &QkNormConfig::norm, "The norm."),
      field("over", &QkNormConfig::over, "head: each head by itself; width: all heads together.")};
}

config::Fields AttentionConfig::fields() {
  using namespace config;
  using C = AttentionConfig;
  return {field("heads", &C::heads, "Heads of the queries.", a_size()),
          field("kv_heads", &C::kv_heads, "Key-value heads; null: as many as heads.", a_size()),
          field("head_width", &C::head_width, "Features of a head; null: width / heads.", a_size()),
          field("causal", &C::causal, "A query sees keys up to its own position."),
          field("bias", &C::bias, "Biases in q, k, v and out."),
          field("qk_norm", &C::qk_norm, "A norm on queries and keys."),
          field("position", &C::position, "rope, alibi, relative or none."),
          field("window", &C::window, "Only keys at a distance below w are seen.", between(1, 1e9)),
          field("softcap", &C::softcap, "Logits become c tanh(z / c).", above(0)),
          field("scale", &C::scale, "Factor on q k^T; null: 1 / sqrt(head width)."),
          field("dropout", &C::dropout, "Dropout on the weights.", at_least(0), at_most(1))};
}

LayerPtr AttentionConfig::build(const Scope& scope, const Signature& in) const {
  return std::make_unique<Attention>(*this, scope, in);
}

namespace {

std::int64_t checked_head_width(const AttentionConfig& config, const Signature& in) {
  require_numbers("attention", in);
  require(in.shape.rank() == 2, "attention: expected sequences (T, C); got samples of shape {}",
          in.shape);
  const std::int64_t width = in.shape[-1];
  require(config.head_width || width % config.heads == 0,
          "attention: {} heads do not divide the width of {}; give other heads or a head_width",
          config.heads, width);
  return config.head_width.value_or(width / config.heads);
}

std::int64_t checked_kv_heads(const AttentionConfig& config) {
  const std::int64_t kv_heads = config.kv_heads.value_or(config.heads);
  require(config.heads % kv_heads == 0, "attention: {} key-value heads do not divide {} heads",
          kv_heads, config.heads);
  return kv_heads;
}

Linear::Options product(const AttentionConfig& config,
                        ParameterKind::Role role = ParameterKind::matrix) {
  return {.bias = config.bias, .role = role, .features_last = true};
}

// What a mask of keys (B, S) and one of pairs (B or 1, T, S) both let through.
Tensor both(const Tensor& keys, const Tensor& pairs) {
  if (!keys.defined() || !pairs.defined()) return keys.defined() ? keys : pairs;
  const Tensor one = Tensor::ones({1}, DType::f32), zero = Tensor::zeros({1}, DType::f32);
  const Tensor counts = where(reshape(keys, {keys.size(0), 1, keys.size(1)}), one, zero);
  return to(where(pairs, counts, zero), DType::u8);
}

}  // namespace

Attention::Attention(const AttentionConfig& config, const Scope& scope, const Signature& in,
                     const AttentionParts& parts)
    : Layer(scope, {.shape = in.shape, .vocab = 0, .features_last = true}),
      config_(config),
      cross_(parts.memory.has_value()),
      kv_heads_(checked_kv_heads(config)),
      head_width_(checked_head_width(config, in)),
      q_(scope.child("q"), in.shape, config.heads * head_width_, product(config)),
      k_(scope.child("k"), parts.memory.value_or(in.shape), kv_heads_ * head_width_,
         product(config)),
      v_(scope.child("v").with_gain(parts.value_gain), parts.memory.value_or(in.shape),
         kv_heads_ * head_width_, product(config)),
      out_(scope.child("out").with_gain(parts.value_gain),
           Shape{in.shape[0], config.heads * head_width_}, in.shape[-1],
           product(config, ParameterKind::residual_matrix)) {
  child("q", q_);
  child("k", k_);
  child("v", v_);
  child("out", out_);
  const auto norm = [&](const char* name, const Shape& in_shape, std::int64_t heads,
                        LayerPtr& into) {
    const bool per_head = config.qk_norm->over == QkNormOver::head;
    const Shape shape{in_shape[0], per_head ? head_width_ : heads * head_width_};
    into = config.qk_norm->norm.build(scope.child(name),
                                      {.shape = shape, .vocab = 0, .features_last = true});
    child(name, *into);
  };
  if (config.qk_norm) {
    norm("q_norm", in.shape, config.heads, q_norm_);
    norm("k_norm", k_.output().shape, kv_heads_, k_norm_);
    if (parts.value_norm) norm("v_norm", v_.output().shape, kv_heads_, v_norm_);
  }
  require(!cross_ || (!config.causal && !config.window),
          "attention: cross-attention sees the whole source; it has no causality and no window");
  config.position.visit([&]<class Position>(const Position& position) {
    constexpr bool none = std::is_same_v<Position, NoPositionConfig>;
    require(none || !cross_,
            "attention: position \"{}\" does not go with cross-attention, whose queries and keys "
            "stand in two sequences",
            Position::type);
    if constexpr (std::is_same_v<Position, AlibiPositionConfig>) {
      alibi_slopes_ = alibi_slopes(config.heads);
    } else if constexpr (std::is_same_v<Position, RelativePositionConfig>) {
      relative_ = std::make_unique<RelativeBias>(
          position, config.heads, config.causal ? Direction::causal : Direction::both,
          scope.child("relative"));
      child("relative", *relative_);
    } else if constexpr (std::is_same_v<Position, RopePositionConfig>) {
      require(head_width_ % 2 == 0,
              "attention: rope turns pairs of features; the head width of {} is odd", head_width_);
    } else {
      require(none,
              "attention: position \"{}\" is added to the embeddings of a transformer; here rope, "
              "alibi, relative or none",
              Position::type);
    }
  });
}

Tensor Attention::heads_of(const Tensor& x, std::int64_t heads, Layer* norm,
                           const Forward& pass) const {
  const Shape split{x.size(0), x.size(1), heads, head_width_};
  if (!norm) return reshape(x, split);
  if (config_.qk_norm->over == QkNormOver::width) return reshape(norm->forward(x, pass), split);
  const Tensor per_head = reshape(x, Shape{x.size(0), x.size(1) * heads, head_width_});
  Forward of_heads = pass;  // in which each head of a token counts as the token does
  if (pass.mask.defined()) of_heads.mask = repeat_interleave(pass.mask, 1, heads);
  return reshape(norm->forward(per_head, of_heads), split);
}

Tensor Attention::turned(const Tensor& x, std::int64_t start) const {
  const auto* rotary = config_.position.get_if<RopePositionConfig>();
  if (!rotary) return x;
  return rope(x, {.base = rotary->base, .layout = rotary->layout, .offset = start});
}

Tensor Attention::bias_for(std::int64_t queries, std::int64_t keys, const Forward& pass) {
  if (cross_) return {};
  if (relative_) return relative_->forward(queries, keys);
  if (alibi_slopes_.empty()) return pass.attention_bias;
  const Shape shape{config_.heads, queries, keys};
  const DType type = q_.weight().dtype();
  if (!alibi_.defined() || !(alibi_.shape() == shape) || alibi_.dtype() != type) {
    alibi_ = alibi_bias(alibi_slopes_, queries, keys, type);
  }
  return alibi_;
}

Attention::KeysAndValues Attention::read(const Tensor& x, std::int64_t start, const Forward& pass) {
  return {.k = turned(heads_of(k_.forward(x, pass), kv_heads_, k_norm_.get(), pass), start),
          .v = heads_of(v_.forward(x, pass), kv_heads_, v_norm_.get(), pass)};
}

Attention::KeysAndValues Attention::read_on(const Tensor& x, const Forward& pass) {
  require(config_.causal, "attention: {} is not causal, so nothing can be kept for later tokens",
          path());
  KeysAndValues all = read(x, pass.cache->length, pass);
  std::vector<Tensor>& kept = pass.cache->kept[path()];
  if (!kept.empty()) {
    all = {.k = concatenate({kept[0], all.k}, 1), .v = concatenate({kept[1], all.v}, 1)};
  }
  kept = {all.k, all.v};
  return all;
}

Attention::KeysAndValues Attention::read_memory(const Forward& pass) {
  if (pass.cache) {
    const auto kept = pass.cache->kept.find(path());
    if (kept != pass.cache->kept.end()) return {.k = kept->second[0], .v = kept->second[1]};
  }
  require(pass.memory.defined(),
          "attention: {} reads an encoded source; the pass has none (Forward::memory)", path());
  Forward reading = pass;
  reading.mask = pass.source_mask;
  const KeysAndValues all = read(pass.memory, 0, reading);
  if (pass.cache) pass.cache->kept[path()] = {all.k, all.v};
  return all;
}

bool Attention::in_one_op(const Forward& pass) const {
  return !cross_ && !pass.cache && !config_.qk_norm && kv_heads_ == config_.heads &&
         !config_.position.get_if<RopePositionConfig>();
}

Tensor Attention::queries_keys_values(const Tensor& x) const {
  const std::array<Tensor, 3> weights{q_.weight(), k_.weight(), v_.weight()};
  const std::array<Tensor, 3> biases{q_.bias(), k_.bias(), v_.bias()};
  return linear_stack(x, weights,
                      config_.bias ? std::span<const Tensor>(biases) : std::span<const Tensor>());
}

Tensor Attention::forward(const Tensor& x, const Forward& pass) {
  return out_.forward(attend(x, pass), pass);
}

Tensor Attention::forward_onto(const Tensor& residual, const Tensor& x, const Forward& pass) {
  return out_.forward_onto(residual, attend(x, pass), pass);
}

Tensor Attention::attend(const Tensor& x, const Forward& pass) {
  AttentionOptions options;
  options.scale = config_.scale;
  options.causal = config_.causal;
  options.window = config_.window.value_or(0);
  options.softcap = config_.softcap.value_or(0);
  options.mask = cross_ ? pass.source_mask : both(pass.mask, pass.visible);
  if (training() && pass.dropout && config_.dropout > 0) {
    options.dropout = config_.dropout;
    options.dropout_key = pass.key(path());
  }
  Tensor largest;
  const bool wants_logits = pass.observer && pass.observer->wants_logits();
  if (wants_logits) options.largest_logit = &largest;
  Tensor y;
  if (in_one_op(pass)) {
    options.bias = bias_for(x.size(1), x.size(1), pass);
    y = attention_stack(queries_keys_values(x), config_.heads, options);
  } else {
    const std::int64_t start = pass.cache && !cross_ ? pass.cache->length : 0;
    const Tensor q =
        turned(heads_of(q_.forward(x, pass), config_.heads, q_norm_.get(), pass), start);
    const auto [k, v] = cross_       ? read_memory(pass)
                        : pass.cache ? read_on(x, pass)
                                     : read(x, 0, pass);
    options.bias = bias_for(q.size(1), k.size(1), pass);
    y = reshape(attention(q, k, v, options),
                Shape{x.size(0), x.size(1), config_.heads * head_width_});
  }
  if (wants_logits) pass.observer->largest_logit(path(), largest);
  return y;
}

}  // namespace norma
