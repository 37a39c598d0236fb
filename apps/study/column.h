// A column of a study's tables.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/study/expression.h"
#include "apps/study/run_record.h"

namespace norma::study {

// What tables list: a measure's name; or an expression in which `arm` stands for the arm, perhaps
// under a name of its own: "loss(arm, 100)", "rms = probe(arm, 'stream.rms.blocks.last', 0)".
struct Column {
  std::string name;        // "rms"; else the whole text
  std::string expression;  // without that name
  std::string doc;         // the measure's, where it is one; else the expression
  Expression value;

  [[nodiscard]] double of(const RunRecord& run) const;
};
// Throws Error with what is wrong.
[[nodiscard]] Column column_of(std::string_view text);
[[nodiscard]] std::vector<Column> columns_of(std::span<const std::string> texts);

}  // namespace norma::study
