// Translation of dates: many ways to write a day, one ISO form.
#pragma once

#include <memory>

#include "apps/data/sequence_task.h"

namespace norma {

// Days of 1900 to 2099 in English, one character a token: "Thursday, March 5th, 1987", "5 mar
// 1987", "3/5/1987" (a slash: the month first), "05.03.1987" (a dot: the day first), ...; the
// answer is "1987-03-05". Days that validation asks never stand in training.
struct DatesConfig : TaskOptions {
  static constexpr const char* type = "dates";
  static constexpr const char* doc = "Dates as people write them; the answer is the ISO form.";
  static constexpr const char* source = "as in the attention exercise of deeplearning.ai";

  [[nodiscard]] static config::Fields fields() { return sample_fields(); }
  [[nodiscard]] std::unique_ptr<DataSet> make(const DataContext& run) const;
};

// The ways in which a day is written.
[[nodiscard]] std::int64_t num_date_forms();
// Day `day` (0 is 1900-01-01) in one of them, in the case of English.
[[nodiscard]] std::string write_date(std::int64_t day, std::int64_t form);
// "1987-03-05".
[[nodiscard]] std::string iso_date(std::int64_t day);

}  // namespace norma
