// The list of models. To add one: a file pair like models/sequential.{h,cpp}, and its name here.
#pragma once

#include "models/recurrent.h"
#include "models/sequential.h"
#include "models/transformer.h"

namespace norma {

struct ModelConfig : config::OneOf<SequentialConfig, TransformerConfig, RecurrentConfig> {
  static constexpr const char* family = "model";
  static constexpr const char* family_doc = "The network.";
  using OneOf::OneOf;

  // `in` describes one sample of the data. Throws Error where a layer does not fit it.
  [[nodiscard]] ModelPtr build(std::uint64_t seed, const Signature& in,
                               DType dtype = DType::f32) const {
    return visit([&](const auto& model) { return model.build(seed, in, dtype); });
  }
};

}  // namespace norma
