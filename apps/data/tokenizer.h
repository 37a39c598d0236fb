// Text as ids and back.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/data/bpe.h"
#include "apps/data/data_record.h"

namespace norma {

class Tokenizer {
 public:
  // An id a byte: 0..255. Every text has ids.
  [[nodiscard]] static Tokenizer bytes();
  // An id a character (Unicode code point) of `text`, numbered in the order of the code points.
  // Throws Error, naming `source`, if the text is empty or not UTF-8.
  [[nodiscard]] static Tokenizer characters(std::string_view text, std::string_view source);
  // The ids of byte-pair encoding. Every text has ids.
  [[nodiscard]] static Tokenizer byte_pairs(Bpe bpe);
  // As it was kept. Throws Error if the record has none.
  [[nodiscard]] static Tokenizer from(const DataRecord& record);

  void keep(DataRecord& record) const;
  [[nodiscard]] std::int64_t vocab() const;
  // Throws Error for a character that has no id, and for what is not UTF-8; `source` is named.
  [[nodiscard]] std::vector<std::int64_t> encode(std::string_view text,
                                                 std::string_view source = "text") const;
  // Throws Error for an id outside of the vocabulary.
  [[nodiscard]] std::string decode(std::span<const std::int64_t> ids) const;

 private:
  std::optional<Bpe> bpe_;
  std::vector<char32_t> characters_;  // by id; empty for bytes and byte pairs
  std::vector<std::int32_t> id_of_;   // by code point; -1 where there is none
};

}  // namespace norma
