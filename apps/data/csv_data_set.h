// A table of numbers from a CSV file, and the column that is predicted.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "apps/data/csv.h"
#include "apps/data/labelled_arrays.h"

namespace norma {

enum class CsvTask : std::uint8_t { classification, regression };
constexpr auto config_names(CsvTask) {
  return std::to_array<std::string_view>({"classification", "regression"});
}

// All columns but the target are features, and must be numbers. Classes are the distinct values of
// the target: in the order of the numbers if all are whole numbers, else of the alphabet. To
// regress, the target is one number a row, (B, 1).
struct CsvConfig : ArrayOptions {
  static constexpr const char* type = "csv";
  static constexpr const char* doc = "A table of numbers; one column is predicted from the others.";
  static constexpr const char* source = "RFC 4180";

  std::string path;
  std::optional<std::variant<std::string, std::int64_t>> target;
  CsvTask task = CsvTask::classification;
  std::optional<bool> header;

  [[nodiscard]] static config::Fields fields();
  [[nodiscard]] std::unique_ptr<DataSet> make(const DataContext& run) const;
};

struct Table {
  std::vector<std::string> names;  // of the columns: those of the header, else "1", "2", ...
  bool has_header = false;
  std::vector<CsvRow> rows;
};

// Whether the first row holds names is told by `header`, else they are names if none is a number.
// Throws Error for CSV that is malformed, and for names that stand twice.
[[nodiscard]] Table parse_table(std::string_view text, const std::string& source,
                                std::optional<bool> header);
// The number in a field. Throws Error with line and column if it is missing, or is none.
[[nodiscard]] double number_at(const Table& table, std::size_t row, std::size_t column,
                               const std::string& source);

}  // namespace norma
