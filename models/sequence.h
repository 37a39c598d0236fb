// What the models that read sequences of ids have in common.
#pragma once

#include <memory>
#include <optional>

#include "layers/linear.h"

namespace norma {

// The number of ids of a model called `model`: the given one, or the data's. Throws Error if the
// data are no sequences of ids, or have more ids.
[[nodiscard]] std::int64_t checked_vocab(const char* model, std::optional<std::int64_t> vocab,
                                         const Signature& in);
// The longest sequence: the given one, or `length`, the data's. Throws Error if that is longer.
[[nodiscard]] std::int64_t checked_context(const char* model, std::optional<std::int64_t> context,
                                           std::int64_t length);
// Sequences as long as those of `in`, with so many features a token.
[[nodiscard]] Signature features_of(const Signature& in, std::int64_t features);
// The product of the features that makes the logits, without a bias. scope: that of the head.
[[nodiscard]] std::unique_ptr<Linear> make_head(const Scope& scope, const Signature& features,
                                                std::int64_t vocab);

}  // namespace norma
