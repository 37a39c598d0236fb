#include "models/transformer.h"

#include <algorithm>
#include <cmath>

#include "core/ops/arithmetic.h"
#include "core/ops/cast.h"
#include "core/ops/linear.h"
#include "core/ops/math.h"
#include "core/ops/movement.h"
#include "models/sequence.h"

namespace norma {

ModelPtr TransformerConfig::build(std::uint64_t seed, const Signature& in, DType dtype) const {
  return std::make_unique<Transformer>(*this, Scope(seed, resolved_init(), dtype), in);
}

namespace {

std::int64_t vocab_of(const TransformerConfig& config, const Signature& in) {
  require(config.kind != TransformerKind::encoder_decoder || in.source.rank() == 1,
          "transformer: an encoder_decoder reads a source; the data have none; give kind decoder, "
          "or data with a source (reverse, dates)");
  return checked_vocab(TransformerConfig::type, config.vocab, in);
}

std::int64_t context_of(const TransformerConfig& config, const Signature& in) {
  const bool two = config.kind == TransformerKind::encoder_decoder;
  return checked_context(TransformerConfig::type, config.context,
                         two ? std::max(in.shape[0], in.source[0]) : in.shape[0]);
}

}  // namespace

Transformer::Transformer(const TransformerConfig& config, const Scope& scope, const Signature& in)
    : Model(scope, features_of(in, vocab_of(config, in))),
      config_(config),
      context_(context_of(config, in)),
      tokens_(scope.child("tokens"), in.shape, output().shape[-1], config.width) {
  const Signature features = features_of(in, config.width);
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
  if (config.embedding_norm) {
    embedding_norm_ =
        config.norm_of(config.sides()[0], 0).build(scope.child("embedding_norm"), features);
    child("embedding_norm", *embedding_norm_);
  }
  dropout_ = std::make_unique<Dropout>(scope.child("dropout"), features, config.dropout);
  child("dropout", *dropout_);
  if (config.kind == TransformerKind::encoder_decoder) {
    Signature source = features;
    source.shape = Shape{in.source[0], config.width};
    encoder_ = std::make_unique<Stack>(config, Side::encoder, scope.child("encoder"), source);
    child("encoder", *encoder_);
    stack_ = std::make_unique<Stack>(config, Side::decoder, scope.child("decoder"), features);
    child("decoder", *stack_);
  } else {
    stack_ = std::make_unique<Stack>(config, Side::only, scope, features);
    child("", *stack_);
  }
  if (!config.tied) {
    head_ = make_head(scope.child("head"), features, output().shape[-1]);
    child("head", *head_);
  }
}

Tensor Transformer::embed(const Tensor& ids, const Forward& pass) {
  require(ids.rank() == 2, "transformer: expected ids of shape (B, T); got {}", ids.shape());
  const std::int64_t start = pass.cache ? pass.cache->length : 0, end = start + ids.size(1);
  require(end <= context_, "transformer: a sequence of {} tokens is longer than the context of {}",
          end, context_);
  Tensor x = tokens_.forward(ids, pass);
  if (embedding_scale_ != 1) x = x * embedding_scale_;
  if (positions_) {
    x = x + positions_->forward(slice(Tensor::arange(end), 0, start, end), pass);
  } else if (sinusoids_.defined()) {
    x = x + to(slice(sinusoids_, 0, start, end), x.dtype());
  }
  if (embedding_norm_) x = embedding_norm_->forward(x, pass);
  return dropout_->forward(x, pass);
}

Tensor Transformer::features(const Tensor& ids, const Forward& pass, Run run) {
  if (!encoder_) return ((*stack_).*run)(embed(ids, pass), pass);
  Forward writing = pass;
  // Later passes with a cache find the source's keys and values in it.
  if (!pass.cache || pass.cache->length == 0) writing.memory = read_source(pass, run);
  return ((*stack_).*run)(embed(ids, pass), writing);
}

Tensor Transformer::read_source(const Forward& pass, Run run) {
  require(pass.source.defined(),
          "transformer: an encoder_decoder reads a source; this pass has none (Forward::source)");
  Forward reading = pass;
  reading.mask = pass.source_mask;
  reading.stream += "/source";  // other dropout than the decoder's
  reading.cache = nullptr;
  return ((*encoder_).*run)(embed(pass.source, reading), reading);
}

Continues Transformer::continues() const {
  const Side side = config_.sides().back();
  bool per_token = config_.causal(side) && (!config_.qk_norm || config_.qk_norm->norm.per_token());
  for (std::int64_t i = 0; i < config_.blocks(side); ++i) {
    per_token = per_token && config_.norm_of(side, i).per_token();
  }
  if (config_.embedding_norm) {
    per_token = per_token && config_.norm_of(config_.sides()[0], 0).per_token();
  }
  return per_token ? Continues::within_context : Continues::no;
}

Tensor Transformer::forward(const Tensor& ids, const Forward& pass) {
  const Tensor x = features(ids, pass, &Stack::forward);
  if (pass.cache) pass.cache->length += ids.size(1);
  Tensor logits = head_ ? head_->forward(x, pass) : linear(x, tokens_.weight());
  if (config_.logit_softcap) {
    logits = tanh(logits * (1 / *config_.logit_softcap)) * *config_.logit_softcap;
  }
  return logits;
}

bool Transformer::profile(const Tensor& ids, const Forward& pass) {
  if (!config_.is_profiled()) return false;
  const NoGrad off;
  const bool was_training = training();
  eval();
  (void)features(ids, pass, &Stack::profile);
  train(was_training);
  return true;
}

}  // namespace norma
