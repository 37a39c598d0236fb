#include "models/sequence.h"

namespace norma {

std::int64_t checked_vocab(const char* model, std::optional<std::int64_t> vocab,
                           const Signature& in) {
  require(in.vocab > 0 && in.shape.rank() == 1,
          "{}: expected sequences of ids; got samples of shape {}{}", model, in.shape,
          in.vocab > 0 ? "" : " that hold numbers");
  require(!vocab || *vocab >= in.vocab, "{}: `vocab` is {}; the data has {} ids", model,
          vocab.value_or(0), in.vocab);
  return vocab.value_or(in.vocab);
}

std::int64_t checked_context(const char* model, std::optional<std::int64_t> context,
                             std::int64_t length) {
  require(!context || *context >= length,
          "{}: `context` is {}; the data's sequences have {} tokens", model, context.value_or(0),
          length);
  return context.value_or(length);
}

Signature features_of(const Signature& in, std::int64_t features) {
  Signature out{.shape = Shape{in.shape[0], features}};
  out.source = in.source;
  out.features_last = true;
  return out;
}

std::unique_ptr<Linear> make_head(const Scope& scope, const Signature& features,
                                  std::int64_t vocab) {
  return std::make_unique<Linear>(
      scope, features.shape, vocab,
      Linear::Options{.bias = false, .role = ParameterKind::head, .features_last = true});
}

}  // namespace norma
