// A file of lines: one sequence a line.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/data/data_set.h"
#include "apps/data/tokenizer.h"

namespace norma {

// Characters of a line; `_`, the id behind them, begins and ends it and fills it up to the longest:
//
//   decoder   inputs  _ a n n a    targets  a n n a _
//   encoder   inputs  a n _ a _    targets  -  -  n  -  -     (masked tokens, masking.h)
//
// with masks of 0 behind the end, where nothing is predicted. Empty lines are left out. The lines
// of the validation part are drawn from the whole file, the same for every seed.
struct LinesConfig : SampleOptions {
  static constexpr const char* type = "lines";
  static constexpr const char* doc = "A text file, each line a sequence of characters of its own.";
  static constexpr const char* source = "as in makemore's names";

  std::string path;

  [[nodiscard]] static config::Fields fields();
  [[nodiscard]] std::unique_ptr<DataSet> make(const DataContext& run) const;
};

}  // namespace norma
