// The shift task: repeat the ids one place later.
#pragma once

#include <memory>

#include "apps/data/sequence_task.h"

namespace norma {

// x is uniform over 0..vocab-1 at each place; target[i] = x[i-1], and target[0] = x[length-1],
// which a causal model cannot know: its loss is at least ln(vocab) / length.
struct ShiftConfig : SequenceOptions {
  static constexpr const char* type = "shift";
  static constexpr const char* doc =
      "Random ids; the target is the id before, rotated right by one.";
  static constexpr const char* source = "LearningLLM, src/09, section 7.5";

  [[nodiscard]] static config::Fields fields() { return sequence_fields(); }
  [[nodiscard]] std::unique_ptr<DataSet> make(const DataContext& run) const;
};

}  // namespace norma
