#include "apps/data/csv.h"

#include <charconv>

#include "core/error.h"

namespace norma {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

class Reader {
 public:
  Reader(std::string_view text, const std::string& source) : text_(text), source_(source) {
    if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;  // a byte order mark
    require(text_.find('\0') == text_.npos,
            "{}: holds a byte 0, so it is no text in UTF-8; if it is UTF-16 or packed, convert it",
            source_);
  }

  std::vector<CsvRow> rows() {
    std::vector<CsvRow> rows;
    while (at_ < text_.size()) {
      CsvRow row{line_, {}};
      do {
        row.fields.push_back(field());
      } while (take(','));
      // Lines end with CR LF, LF, or CR.
      const bool carriage = take('\r'), feed = take('\n');
      require(at_ == text_.size() || carriage || feed,
              "{}: line {}: expected a comma or the end of the line behind the quoted field {}",
              source_, line_, row.fields.size());
      ++line_;
      if (row.fields.size() == 1 && row.fields[0].empty()) continue;
      require(rows.empty() || row.fields.size() == rows[0].fields.size(),
              "{}: line {}: expected {} fields, as in line {}; got {}", source_, row.line,
              rows.empty() ? 0 : rows[0].fields.size(), rows.empty() ? 0 : rows[0].line,
              row.fields.size());
      rows.push_back(std::move(row));
    }
    require(!rows.empty(), "{}: there are no rows in it", source_);
    return rows;
  }

 private:
  bool take(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  std::string field() {
    std::size_t quote = text_.find_first_not_of(" \t", at_);
    if (quote == text_.npos || text_[quote] != '"') {
      const std::size_t end = std::min(text_.find_first_of(",\r\n", at_), text_.size());
      const std::string_view plain = text_.substr(at_, end - at_);
      at_ = end;
      return std::string(trimmed(plain));
    }
    const std::int64_t first_line = line_;
    std::string value;
    for (at_ = quote + 1;; ++at_) {
      require(at_ < text_.size(), "{}: line {}: the quote that begins there does not end", source_,
              first_line);
      if (text_[at_] == '"' && (at_ + 1 == text_.size() || text_[at_ + 1] != '"')) break;
      if (text_[at_] == '"') ++at_;
      if (text_[at_] == '\n') ++line_;
      value.push_back(text_[at_]);
    }
    ++at_;
    while (take(' ') || take('\t')) {
    }
    return value;
  }

  std::string_view text_;
  const std::string& source_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
};

}  // namespace

std::vector<CsvRow> parse_csv(std::string_view text, const std::string& source) {
  return Reader(text, source).rows();
}

bool read_number(std::string_view field, double& value) {
  if (field.starts_with('+')) field.remove_prefix(1);
  const char* end = field.data() + field.size();
  const auto [stopped, code] = std::from_chars(field.data(), end, value);
  return code == std::errc() && stopped == end;
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted.push_back('"');
    quoted.push_back(c);
  }
  return quoted + '"';
}

}  // namespace norma
