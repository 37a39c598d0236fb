// All data sets: the family behind `data` in a configuration.
#pragma once

#include <memory>

#include "apps/data/fashion_mnist.h"
#include "apps/data/idx_data_set.h"
#include "apps/data/shift.h"
#include "apps/data/text.h"

namespace norma {

struct DataConfig : config::OneOf<FashionMnistConfig, IdxConfig, TextConfig, ShiftConfig> {
  static constexpr const char* family = "data";
  static constexpr const char* family_doc = "What is learned from.";
  using OneOf::OneOf;
};

// Reads or generates the data. `seed` decides the order of the samples. Throws Error.
[[nodiscard]] inline std::unique_ptr<DataSet> make_data_set(const DataConfig& config,
                                                            std::uint64_t seed) {
  return config.visit([&](const auto& member) { return member.make(seed); });
}

}  // namespace norma
