// Text as ids and back.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace norma {

class Tokenizer {
 public:
  // An id a byte: 0..255. Every text has ids.
  [[nodiscard]] static Tokenizer bytes();
  // An id a character (Unicode code point) of `text`, numbered in the order of the code points.
  // Throws Error, naming `source`, if the text is empty or not UTF-8.
  [[nodiscard]] static Tokenizer characters(std::string_view text, std::string_view source);
  // The inverse of vocabulary(): bytes() for an empty text.
  [[nodiscard]] static Tokenizer from_vocabulary(std::string_view vocabulary);

  [[nodiscard]] std::int64_t vocab() const;
  // The characters in the order of their ids; empty for bytes.
  [[nodiscard]] std::string vocabulary() const;
  // Throws Error for a character that has no id, and for what is not UTF-8; `source` is named.
  [[nodiscard]] std::vector<std::int64_t> encode(std::string_view text,
                                                 std::string_view source = "text") const;
  // Throws Error for an id outside of the vocabulary.
  [[nodiscard]] std::string decode(std::span<const std::int64_t> ids) const;

 private:
  std::vector<char32_t> characters_;  // by id; empty for bytes
  std::vector<std::int32_t> id_of_;   // by code point; -1 where there is none
};

}  // namespace norma
