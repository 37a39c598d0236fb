#include "models/recurrent.h"

#include "core/config/sizes.h"
#include "core/ops/linear.h"
#include "models/sequence.h"

namespace norma {

config::Fields RecurrentConfig::fields() {
  using namespace config;
  using C = RecurrentConfig;
  return {
      field("cell", &C::cell, "What reads the sequence."),
      field("layers", &C::layers, "Cells one behind the other.", between(1, 1e4),
            also_called("num_layers n_layers")),
      field("hidden", &C::hidden, "Features of a cell's state.", a_size(), required(),
            also_called("hidden_size")),
      field("width", &C::width, "Features of an embedding; null: hidden.", a_size(),
            also_called("embed_dim embedding_dim")),
      field("norm", &C::norm, "A norm inside the cells; null: none."),
      field("dropout", &C::dropout, "Dropout on the embeddings and behind each cell.", at_least(0),
            at_most(1)),
      field("tied", &C::tied, "The head is the transposed table of tokens."),
      field("init", &C::init, "How parameters start."),
      field("vocab", &C::vocab, "Number of token ids; checked against the data if given.",
            a_size()),
      field("context", &C::context, "Longest sequence of the data; checked if given.", a_size())};
}

void RecurrentConfig::check(config::Problems& problems, const std::string& path) const {
  if (tied && embedding_width() != hidden) {
    problems.add(config::join(path, "tied"),
                 "the head reads {} features, a row of tokens has {}; give width {} or none",
                 hidden, embedding_width(), hidden);
  }
}

ModelPtr RecurrentConfig::build(std::uint64_t seed, const Signature& in, DType dtype) const {
  return std::make_unique<RecurrentModel>(*this, Scope(seed, init, dtype), in);
}

namespace {

std::int64_t vocab_of(const RecurrentConfig& config, const Signature& in) {
  const std::int64_t vocab = checked_vocab(RecurrentConfig::type, config.vocab, in);
  (void)checked_context(RecurrentConfig::type, config.context, in.shape[0]);
  return vocab;
}

LayerPtr make_cell(const RecurrentConfig& config, const Scope& scope, const Signature& in) {
  const RecurrentOptions options{.hidden = config.hidden, .norm = config.norm};
  if (config.cell == CellKind::lstm) return LstmConfig{options}.build(scope, in);
  return GruConfig{options}.build(scope, in);
}

}  // namespace

RecurrentModel::RecurrentModel(const RecurrentConfig& config, const Scope& scope,
                               const Signature& in)
    : Model(scope, features_of(in, vocab_of(config, in))),
      config_(config),
      tokens_(scope.child("tokens"), in.shape, output().shape[-1], config.embedding_width()) {
  child("tokens", tokens_);
  Signature features = features_of(in, config.embedding_width());
  const auto dropout = [&](const std::string& name) {
    return std::make_unique<Dropout>(scope.child(name), features, config.dropout);
  };
  embedding_dropout_ = dropout("embedding_dropout");
  child("embedding_dropout", *embedding_dropout_);
  for (std::int64_t i = 0; i < config.layers; ++i) {
    const std::string name = fmt::format("cells.{}", i);
    cells_.push_back(make_cell(config, scope.child(name), features));
    child(name, *cells_.back());
    features = cells_.back()->output();
    dropouts_.push_back(dropout(name + "_dropout"));
    child(name + "_dropout", *dropouts_.back());
  }
  if (!config.tied) {
    head_ = make_head(scope.child("head"), features, output().shape[-1]);
    child("head", *head_);
  }
}

Tensor RecurrentModel::forward(const Tensor& ids, const Forward& pass) {
  require(ids.rank() == 2, "recurrent: expected ids of shape (B, T); got {}", ids.shape());
  Tensor x = embedding_dropout_->forward(tokens_.forward(ids, pass), pass);
  if (pass.observer) pass.observer->stream("embedding", x);
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    x = dropouts_[i]->forward(cells_[i]->forward(x, pass), pass);
    if (pass.observer) pass.observer->stream(fmt::format("cells.{}", i), x);
  }
  if (pass.cache) pass.cache->length += ids.size(1);
  return head_ ? head_->forward(x, pass) : linear(x, tokens_.weight());
}

Continues RecurrentModel::continues() const {
  return !config_.norm || config_.norm->per_token() ? Continues::endlessly : Continues::no;
}

}  // namespace norma
