// All data sets: the family behind `data` in a configuration.
#pragma once

#include <memory>

#include "apps/data/arithmetic.h"
#include "apps/data/csv_data_set.h"
#include "apps/data/dates.h"
#include "apps/data/fashion_mnist.h"
#include "apps/data/idx_data_set.h"
#include "apps/data/lines.h"
#include "apps/data/points.h"
#include "apps/data/reorder.h"
#include "apps/data/shift.h"
#include "apps/data/text.h"

namespace norma {

struct DataConfig
    : config::OneOf<FashionMnistConfig, IdxConfig, CsvConfig, TextConfig, LinesConfig,
                    SpiralsConfig, GaussiansConfig, ShiftConfig, CopyConfig, ReverseConfig,
                    SortConfig, AdditionConfig, ModularConfig, DatesConfig> {
  static constexpr const char* family = "data";
  static constexpr const char* family_doc = "What is learned from.";
  using OneOf::OneOf;
};

// Reads or generates the data. Throws Error.
[[nodiscard]] inline std::unique_ptr<DataSet> make_data_set(const DataConfig& config,
                                                            const DataContext& context) {
  return config.visit([&](const auto& member) { return member.make(context); });
}

}  // namespace norma
