// CSV (RFC 4180): fields between commas, "quoted ""fields""" with commas and line breaks inside.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace norma {

struct CsvRow {
  std::int64_t line = 0;  // where it begins in the file, from 1
  std::vector<std::string> fields;
};

// The rows of a text, all with as many fields as the first. Spaces around an unquoted field do not
// count; empty lines are left out; line breaks may be those of Windows. Throws Error with source
// and line: a row of another length, a quote that does not end, text behind one, a text without
// rows.
[[nodiscard]] std::vector<CsvRow> parse_csv(std::string_view text, const std::string& source);

// True iff the whole field is a number; `value` is set then.
[[nodiscard]] bool read_number(std::string_view field, double& value);

// A field as it stands in CSV: in quotes where it must be.
[[nodiscard]] std::string csv_field(std::string_view text);

}  // namespace norma
