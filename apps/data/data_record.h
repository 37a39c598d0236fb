// What a run keeps of its data, as data.json in its folder: so that it can be used without them,
// and that other data under the same name are noticed.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/config.h"

namespace norma {

struct DataRecord {
  std::string type;  // of the data set
  // Checksum of what was read, 8 digits a part; empty where samples are generated.
  std::string hash;
  // DataSpec.
  std::vector<std::int64_t> input, target, source;
  std::int64_t vocab = 0, classes = 0, edge = -1;
  bool answers = false;
  // Tokenizer: "char" with its characters, "byte", "bpe" with its merges; empty where there is
  // none.
  std::string tokenizer, characters;
  std::vector<std::array<std::int64_t, 2>> merges;
  // Names of the classes and, of a table, of its features and its target.
  std::vector<std::string> class_names, columns;
  std::string target_column;
  // Inputs become (x - mean) / deviation; of a channel or feature each.
  std::vector<double> mean, deviation;

  [[nodiscard]] static config::Fields fields();
};

void write_data_record(const std::string& path, const DataRecord& record);
// Throws Error or ConfigError if there is no such file, or it is no record.
[[nodiscard]] DataRecord read_data_record(const std::string& path);
// Throws Error if the data that are there now are not those that the record was made of; `run` is
// the folder.
void check_same_data(const DataRecord& kept, const DataRecord& now, const std::string& run);

}  // namespace norma
