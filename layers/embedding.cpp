#include "layers/embedding.h"

#include "core/config/sizes.h"
#include "core/ops/indexing.h"

namespace norma {
namespace {

Signature with_features(const Shape& in, std::int64_t out) {
  Shape shape = in;
  shape.push_back(out);
  return {.shape = shape, .vocab = 0, .features_last = true};
}

}  // namespace

config::Fields EmbeddingConfig::fields() {
  using namespace config;
  return {field("out", &EmbeddingConfig::out, "Features of a row.", a_size(), required(),
                also_called("embedding_dim")),
          field("vocab", &EmbeddingConfig::vocab,
                "Number of ids; checked against the data if given.", a_size())};
}

LayerPtr EmbeddingConfig::build(const Scope& scope, const Signature& in) const {
  require(in.vocab > 0, "embedding: expected ids; the input {} holds numbers", in.shape);
  require(!vocab || *vocab == in.vocab, "embedding: `vocab` is {}; the data has {} ids",
          vocab.value_or(0), in.vocab);
  return std::make_unique<Embedding>(scope, in.shape, in.vocab, out);
}

Embedding::Embedding(const Scope& scope, const Shape& in, std::int64_t vocab, std::int64_t out)
    : Layer(scope, with_features(in, out)) {
  weight_ = parameter(scope, "weight", Shape{vocab, out},
                      {.role = ParameterKind::embedding, .fan_in = vocab, .fan_out = out});
}

Tensor Embedding::forward(const Tensor& ids, const Forward&) { return embedding(weight_, ids); }

}  // namespace norma
