// Tasks whose answer is the ids of the source in another order: copy, reverse, sort.
#pragma once

#include <memory>

#include "apps/data/sequence_task.h"

namespace norma {

// The source is uniform over 0..vocab-1 at each of `length` places. A small vocab^length has few
// samples, which then stand in both parts.
struct CopyConfig : SequenceOptions {
  static constexpr const char* type = "copy";
  static constexpr const char* doc = "Random ids; the answer is the same ids.";
  static constexpr const char* source = "Graves et al. 2014, arXiv 1410.5401, section 4.1";

  [[nodiscard]] static config::Fields fields() { return sequence_fields(); }
  [[nodiscard]] std::unique_ptr<DataSet> make(const DataContext& run) const;
};

struct ReverseConfig : SequenceOptions {
  static constexpr const char* type = "reverse";
  static constexpr const char* doc = "Random ids; the answer is the same ids from last to first.";
  static constexpr const char* source = "Grefenstette et al. 2015, arXiv 1506.02516, section 4.1";

  [[nodiscard]] static config::Fields fields() { return sequence_fields(); }
  [[nodiscard]] std::unique_ptr<DataSet> make(const DataContext& run) const;
};

struct SortConfig : SequenceOptions {
  static constexpr const char* type = "sort";
  static constexpr const char* doc = "Random ids; the answer is the same ids in ascending order.";
  static constexpr const char* source = "as in minGPT's demo";

  [[nodiscard]] static config::Fields fields() { return sequence_fields(); }
  [[nodiscard]] std::unique_ptr<DataSet> make(const DataContext& run) const;
};

}  // namespace norma
