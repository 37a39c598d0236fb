#include "core/config/json.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "core/config/problems.h"
#include "core/file.h"

namespace norma::config {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostLevels = 100;  // far above any model; keeps recursion bounded
constexpr std::size_t kMostShown = 60;    // letters of a value in a message

[[noreturn]] void fail(std::string_view source, std::string path, std::string text) {
  throw ConfigError(source, {{std::move(path), std::move(text)}});
}

// Reads the text for nlohmann's parser and counts the lines that it has seen.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, std::size_t* line) : at_(at), line_(line) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    if (*at_ == '\n') ++*line_;
    ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  std::size_t* line_;
};

// What nlohmann's text of a syntax error does not say: that a comma is missing, or one too many.
const char* comma_hint(std::string_view text) {
  const auto says = [&](std::string_view part) { return text.find(part) != text.npos; };
  if (says("unexpected '}'; expected string") || says("unexpected ']'; expected '['")) {
    return "; is there a comma too many before it?";
  }
  const bool closing = text.ends_with("; expected '}'") || text.ends_with("; expected ']'");
  return closing && !says("end of input") ? "; is a comma missing before it?" : "";
}

// Builds the value. The parser's own builder keeps the last of two equal keys in silence, so this
// one keeps account of the keys of every open object.
class Builder : public nlohmann::json_sax<Json> {
 public:
  Builder(const std::size_t* line, Problems& problems) : line_(line), problems_(problems) {}

  bool null() override { return put(nullptr), true; }
  bool boolean(bool value) override { return put(value), true; }
  bool number_integer(number_integer_t value) override { return put(value), true; }
  bool number_unsigned(number_unsigned_t value) override { return put(value), true; }
  bool number_float(number_float_t value, const string_t&) override { return put(value), true; }
  bool string(string_t& value) override { return put(std::move(value)), true; }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return open_.pop_back(), true; }
  bool end_array() override { return open_.pop_back(), true; }
  bool key(string_t& value) override {
    Level& level = open_.back();
    const auto [first, is_new] = level.lines.emplace(value, *line_);
    if (!is_new) {
      problems_.add(path_of(value), "the key stands twice, in line {} and in line {}; remove one",
                    first->second, *line_);
    }
    level.key = std::move(value);
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const Json::exception& e) override {
    // nlohmann's text begins with an error number of its own: "[json.exception....] ".
    std::string text = e.what();
    if (const auto end = text.find("] "); end != text.npos) text.erase(0, end + 2);
    if (text.find("at line ") == text.npos) text += fmt::format(" (line {})", *line_);
    text += comma_hint(text);
    problems_.add("", "{}", text);
    return false;
  }

  Json root;

 private:
  struct Level {
    Json* value;
    std::string key;                                     // of the member that comes next
    std::unordered_map<std::string, std::size_t> lines;  // where each key stands
  };

  [[nodiscard]] std::string path_of(std::string_view last) const {
    std::string path;
    for (std::size_t i = 0; i + 1 < open_.size(); ++i) {
      const Level& level = open_[i];
      path = level.value->is_array() ? join(path, level.value->size() - 1) : join(path, level.key);
    }
    return join(path, last);
  }

  Json* put(Json value) {
    if (open_.empty()) {
      root = std::move(value);
      return &root;
    }
    Level& level = open_.back();
    if (level.value->is_array()) {
      level.value->push_back(std::move(value));
      return &level.value->back();
    }
    // Past ordered_json's own insertion, which searches all keys each time.
    std::vector<std::pair<const std::string, Json>>& members =
        level.value->get_ref<Json::object_t&>();
    members.emplace_back(level.key, std::move(value));
    return &members.back().second;
  }

  bool open(Json value) {
    if (open_.size() >= kMostLevels) {
      problems_.add("", "more than {} levels inside one another, in line {}", kMostLevels, *line_);
      return false;
    }
    Json* const at = put(std::move(value));
    open_.push_back({at, {}, {}});
    return true;
  }

  const std::size_t* line_;
  Problems& problems_;
  std::vector<Level> open_;
};

// True iff nothing but spaces and comments.
bool is_blank(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    if (std::string_view(" \t\r\n").find(text[i]) != std::string_view::npos) {
      ++i;
    } else if (text.substr(i, 2) == "//") {
      i = std::min(text.find('\n', i), text.size());
    } else if (text.substr(i, 2) == "/*") {
      const auto end = text.find("*/", i + 2);
      if (end == text.npos) return false;
      i = end + 2;
    } else {
      return false;
    }
  }
  return true;
}

Json load_chain(const fs::path& path, FileHook each, std::vector<fs::path>& chain) {
  const std::string source = path.string();
  std::error_code code;
  const fs::path real = fs::weakly_canonical(path, code);
  if (std::find(chain.begin(), chain.end(), real) != chain.end()) {
    std::string circle;
    for (const fs::path& p : chain) circle += p.filename().string() + " -> ";
    fail(source, "extends", "a circle: " + circle + real.filename().string());
  }
  std::string text;
  try {
    text = read_file(source);
  } catch (const Error& e) {
    throw ConfigError("", {{"", e.what()}});
  }
  Json json = parse_json(text, source);
  if (!json.is_object()) fail(source, "", "expected an object; got " + shown(json));
  json.erase("$schema");
  each(json, path.parent_path().string());
  const auto extends = json.find("extends");
  if (extends == json.end()) return json;
  if (!extends->is_string()) {
    fail(source, "extends", "expected a path as a string; got " + shown(*extends));
  }
  const fs::path base = path.parent_path() / extends->get<std::string>();
  json.erase("extends");
  chain.push_back(real);
  Json merged = merge(load_chain(base, each, chain), json);
  chain.pop_back();
  return merged;
}

nlohmann::json sorted(const Json& json) {
  if (json.is_object()) {
    nlohmann::json out = nlohmann::json::object();
    for (const auto& [key, value] : json.items()) out[key] = sorted(value);
    return out;
  }
  if (json.is_array()) {
    nlohmann::json out = nlohmann::json::array();
    for (const Json& value : json) out.push_back(sorted(value));
    return out;
  }
  if (json.is_string()) return json.get<std::string>();
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_float()) return json.get<double>();
  if (json.is_number_unsigned()) return json.get<std::uint64_t>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  return nullptr;
}

void compare(const Json& before, const Json& after, const std::string& path,
             std::vector<Difference>& out) {
  if (before == after) return;
  if (before.is_object() && after.is_object()) {
    for (const auto& [key, value] : before.items()) {
      const auto other = after.find(key);
      if (other == after.end()) {
        out.push_back({join(path, key), shown(value), ""});
      } else {
        compare(value, *other, join(path, key), out);
      }
    }
    for (const auto& [key, value] : after.items()) {
      if (!before.contains(key)) out.push_back({join(path, key), "", shown(value)});
    }
  } else if (before.is_array() && after.is_array() && before.size() == after.size()) {
    for (std::size_t i = 0; i < before.size(); ++i) {
      compare(before[i], after[i], join(path, i), out);
    }
  } else {
    out.push_back({path, shown(before), shown(after)});
  }
}

// VALUE of an assignment: JSON where it is JSON, else a string.
Json value_of(std::string_view text, std::string_view key) {
  const bool structured = !text.empty() && (text[0] == '{' || text[0] == '[' || text[0] == '"');
  if (structured || (!is_blank(text) && Json::accept(text))) {
    return parse_json(text, fmt::format("--set {}", key));
  }
  Json value = std::string(text);
  try {
    (void)value.dump();
  } catch (const Json::exception&) {
    fail("--set", std::string(key), "the value is not valid UTF-8");
  }
  return value;
}

}  // namespace

Json parse_json(std::string_view text, std::string_view source) {
  if (is_blank(text)) fail(source, "", "the text is empty; expected a JSON object");
  // The parser would take it for the end, and leave out what follows.
  if (text.find('\0') != std::string_view::npos) fail(source, "", "holds a NUL byte; is it text?");
  std::size_t line = 1;
  Problems problems;
  Builder builder(&line, problems);
  const bool ok = Json::sax_parse(CountingIterator(text.data(), &line),
                                  CountingIterator(text.data() + text.size(), &line), &builder,
                                  Json::input_format_t::json, /*strict=*/true,
                                  /*ignore_comments=*/true);
  problems.raise(source);
  if (!ok) fail(source, "", fmt::format("cannot be read, in line {}", line));
  return std::move(builder.root);
}

Json load_json(const std::string& path) {
  return load_json(path, [](Json&, const std::string&) {});
}

Json load_json(const std::string& path, FileHook each) {
  std::vector<fs::path> chain;
  return load_chain(path, each, chain);
}

Json merge(Json base, const Json& over) {
  if (!over.is_object()) return over;
  if (base.is_string() && !over.contains("type")) base = Json{{"type", base}};
  if (!base.is_object()) return over;
  const auto type = over.find("type");
  if (type != over.end() && (!base.contains("type") || base["type"] != *type)) return over;
  for (const auto& [key, value] : over.items()) {
    const auto at = base.find(key);
    if (at == base.end()) {
      base[key] = value;
    } else {
      *at = merge(std::move(*at), value);
    }
  }
  return base;
}

void set_path(Json& json, std::string_view key, Json value) {
  Json* at = &json;
  std::string path;
  std::string_view rest = key;
  while (true) {
    const auto dot = rest.find('.');
    const std::string part(rest.substr(0, dot));
    if (part.empty()) fail("--set", std::string(key), "the path has an empty part");
    if (at->is_array()) {
      std::size_t index = 0;
      const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
      if (error != std::errc{} || end != part.data() + part.size() || index >= at->size()) {
        fail("--set", std::string(key),
             fmt::format("{} is a list of {}; got {} where an index from 0 belongs", path,
                         at->size(), part));
      }
      at = &(*at)[index];
    } else {
      if (at->is_string()) *at = Json{{"type", *at}};
      if (at->is_null()) *at = Json::object();
      if (!at->is_object()) {
        fail("--set", std::string(key),
             fmt::format("{} is {}, which has no keys; set it first", path, shown(*at)));
      }
      at = &(*at)[part];
    }
    path = join(path, part);
    if (dot == rest.npos) break;
    rest.remove_prefix(dot + 1);
  }
  *at = std::move(value);
}

void apply_set(Json& json, std::string_view assignment) {
  const auto equals = assignment.find('=');
  if (equals == assignment.npos || equals == 0) {
    fail("--set", "", fmt::format("expected KEY=VALUE; got \"{}\"", assignment));
  }
  const std::string_view key = assignment.substr(0, equals);
  set_path(json, key, value_of(assignment.substr(equals + 1), key));
}

void apply_sets(Json& json, std::span<const std::string> assignments) {
  for (const std::string& assignment : assignments) apply_set(json, assignment);
}

std::vector<Difference> difference(const Json& before, const Json& after) {
  std::vector<Difference> out;
  compare(before, after, "", out);
  return out;
}

std::string to_text(const std::vector<Difference>& differences) {
  const auto side = [](const std::string& text) { return text.empty() ? "(absent)" : text; };
  std::string out;
  for (const Difference& d : differences) {
    out += fmt::format("{}: {} -> {}\n", d.path, side(d.before), side(d.after));
  }
  return out;
}

std::string hash(const Json& json) {
  std::uint64_t h = 14695981039346656037ull;  // FNV-1a's offset and prime for 64 bits
  for (const char c : sorted(json).dump()) {
    h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  }
  return fmt::format("{:016x}", h);
}

std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() <= kMostShown) return text;
  std::size_t cut = kMostShown;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) --cut;  // whole letters
  return text.substr(0, cut) + "...";
}

}  // namespace norma::config
