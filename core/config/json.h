// JSON text and values below the configurations: reading with all checks of form, merging, setting
// by path, comparing, hashing. nlohmann/json parses.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace norma::config {

// Objects keep the order of their keys.
using Json = nlohmann::ordered_json;

// Reads JSON text. `//` and `/* */` comments are allowed.
// Throws ConfigError, which names `source`: an empty text, a syntax error (line and column), a key
// that stands twice in one object (its path and both lines), more than 100 levels.
[[nodiscard]] Json parse_json(std::string_view text, std::string_view source = {});

// Reads a file and, recursively, what its `extends` names (a path relative to the file): the file
// is merged into it. Throws ConfigError as parse_json does, and for a circle of `extends`.
[[nodiscard]] Json load_json(const std::string& path);
// Likewise; `each` gets every file by itself before it is merged, and the folder that it lies in.
using FileHook = void (*)(Json& file, const std::string& folder);
[[nodiscard]] Json load_json(const std::string& path, FileHook each);

// Objects merge key by key; everything else replaces. An object with another `type` replaces too,
// since its keys are others. The name "x" is {"type": "x"} where an object without `type` comes.
[[nodiscard]] Json merge(Json base, const Json& over);

// Applies KEY=VALUE. KEY is a dotted path ("model.layers.2.out"), whose objects are made where they
// are missing. VALUE is JSON, else a string. Throws ConfigError.
void apply_set(Json& json, std::string_view assignment);
// Likewise for several, and with the value at hand.
void apply_sets(Json& json, std::span<const std::string> assignments);
void set_path(Json& json, std::string_view key, Json value);

// One line of what differs between two configurations; a missing side is an empty text.
struct Difference {
  std::string path;
  std::string before;
  std::string after;
};
[[nodiscard]] std::vector<Difference> difference(const Json& before, const Json& after);
// "optimizer.lr: 0.001 -> 0.01", a line a difference.
[[nodiscard]] std::string to_text(const std::vector<Difference>& differences);

// 16 hexadecimal digits of FNV-1a (64 bits) over the text with sorted keys: the order of keys does
// not count, and the value is the same on every machine.
[[nodiscard]] std::string hash(const Json& json);

// The value as it stands in messages: JSON, cut when long.
[[nodiscard]] std::string shown(const Json& value);

}  // namespace norma::config
