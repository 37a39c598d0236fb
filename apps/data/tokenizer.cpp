#include "apps/data/tokenizer.h"

#include <algorithm>

#include "core/error.h"

namespace norma {
namespace {

// The code point at text[at], which moves behind it. Throws Error for what is not UTF-8: overlong
// forms, surrogates and cut sequences included (RFC 3629).
char32_t next_character(std::string_view text, std::size_t& at, std::string_view source) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const std::size_t start = at;
  const unsigned first = byte(at++);
  if (first < 0x80) return first;
  const int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
  constexpr char32_t kSmallest[] = {0, 0x80, 0x800, 0x10000};
  char32_t character = first & (0x3Fu >> more);
  bool valid = first >= 0xC2 && first <= 0xF4;
  for (int i = 0; i < more && valid; ++i) {
    valid = (byte(at) & 0xC0) == 0x80;
    character = character << 6 | (byte(at++) & 0x3F);
  }
  valid = valid && character >= kSmallest[more] && character <= 0x10FFFF &&
          (character < 0xD800 || character > 0xDFFF);
  require(valid,
          "{}: not UTF-8 at byte {}: 0x{:02x}; convert it to UTF-8, or, with data of type text, "
          "use the "
          "tokenizer \"byte\"",
          source, start, first);
  return character;
}

void append_utf8(std::string& text, char32_t c) {
  const auto put = [&](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (c < 0x80) return put(c);
  if (c < 0x800) {
    put(0xC0 | c >> 6);
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3F));
  } else {
    put(0xF0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3F));
    put(0x80 | (c >> 6 & 0x3F));
  }
  put(0x80 | (c & 0x3F));
}

}  // namespace

Tokenizer Tokenizer::bytes() { return Tokenizer(); }

Tokenizer Tokenizer::characters(std::string_view text, std::string_view source) {
  require(!text.empty(), "{}: the text is empty", source);
  std::vector<bool> seen(0x110000);
  for (std::size_t at = 0; at < text.size();) seen[next_character(text, at, source)] = true;
  Tokenizer tokenizer;
  for (std::size_t c = 0; c < seen.size(); ++c) {
    if (!seen[c]) continue;
    tokenizer.id_of_.resize(c + 1, -1);
    tokenizer.id_of_[c] = static_cast<std::int32_t>(tokenizer.characters_.size());
    tokenizer.characters_.push_back(static_cast<char32_t>(c));
  }
  return tokenizer;
}

Tokenizer Tokenizer::byte_pairs(Bpe bpe) {
  Tokenizer tokenizer;
  tokenizer.bpe_ = std::move(bpe);
  return tokenizer;
}

Tokenizer Tokenizer::from(const DataRecord& record) {
  if (record.tokenizer == "char") return characters(record.characters, "data.json");
  if (record.tokenizer == "bpe") return byte_pairs(Bpe(record.merges));
  require(record.tokenizer == "byte", "data.json: there is no tokenizer \"{}\"", record.tokenizer);
  return bytes();
}

void Tokenizer::keep(DataRecord& record) const {
  record.tokenizer = bpe_ ? "bpe" : characters_.empty() ? "byte" : "char";
  record.characters.clear();
  for (const char32_t c : characters_) append_utf8(record.characters, c);
  record.merges = bpe_ ? bpe_->merges() : std::vector<Bpe::Merge>();
}

std::int64_t Tokenizer::vocab() const {
  if (bpe_) return bpe_->vocab();
  return characters_.empty() ? 256 : static_cast<std::int64_t>(characters_.size());
}

std::vector<std::int64_t> Tokenizer::encode(std::string_view text, std::string_view source) const {
  if (bpe_) return bpe_->encode(text);
  std::vector<std::int64_t> ids;
  ids.reserve(text.size());
  if (characters_.empty()) {
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
    return ids;
  }
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t start = at;
    const char32_t c = next_character(text, at, source);
    const std::int32_t id = c < id_of_.size() ? id_of_[c] : -1;
    require(
        id >= 0,
        "{}: the character \"{}\" (U+{:04X}, at byte {}) does not stand in the training text, so "
        "the model has no id for it; leave it out",
        source, text.substr(start, at - start), static_cast<std::uint32_t>(c), start);
    ids.push_back(id);
  }
  return ids;
}

std::string Tokenizer::decode(std::span<const std::int64_t> ids) const {
  std::string text;
  for (const std::int64_t id : ids) {
    require(id >= 0 && id < vocab(), "decode: expected ids in 0..{}; got {}", vocab() - 1, id);
    if (bpe_) {
      text += bpe_->bytes(id);
    } else if (characters_.empty()) {
      text.push_back(static_cast<char>(id));
    } else {
      append_utf8(text, characters_[static_cast<std::size_t>(id)]);
    }
  }
  return text;
}

}  // namespace norma
