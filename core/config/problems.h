// What is wrong with a configuration: all of it at once, each problem with its dotted path.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"

namespace norma::config {

class Type;

struct Problem {
  std::string path;  // "model.layers.2.out"; empty for the whole
  std::string text;
};

// Collects problems while a configuration is read and checked.
class Problems {
 public:
  Problems() = default;
  // `whole`: the type of the whole configuration, in which an unknown key is looked for.
  explicit Problems(const Type& whole) : whole_(&whole) {}
  // Null where there is none.
  [[nodiscard]] const Type* whole() const { return whole_; }
  template <class... Args>
  void add(std::string path, fmt::format_string<Args...> text, Args&&... args) {
    list_.push_back({std::move(path), fmt::format(text, std::forward<Args>(args)...)});
  }
  [[nodiscard]] bool empty() const { return list_.empty(); }
  [[nodiscard]] std::size_t size() const { return list_.size(); }
  [[nodiscard]] const std::vector<Problem>& list() const { return list_; }
  // Throws ConfigError if there are any. `source` is the file's name, or empty.
  void raise(std::string_view source) const;

 private:
  std::vector<Problem> list_;
  const Type* whole_ = nullptr;
};

// A configuration that cannot be used. The text has a line a problem.
class ConfigError : public Error {
 public:
  ConfigError(std::string_view source, std::vector<Problem> problems);
  [[nodiscard]] const std::vector<Problem>& problems() const { return problems_; }

 private:
  std::vector<Problem> problems_;
};

// "a" and "b" give "a.b"; an empty part is left out.
[[nodiscard]] std::string join(std::string_view path, std::string_view key);
[[nodiscard]] std::string join(std::string_view path, std::size_t index);

// Single-character insertions, deletions, changes and swaps of neighbours that turn a into b,
// upper and lower case alike (optimal string alignment).
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

// The known name that was probably meant: at most a third of the letters wrong, or one contains the
// other. Of several the nearest, then the one nearest in length. Empty if there is none.
[[nodiscard]] std::string_view nearest_name(std::string_view name,
                                            const std::vector<std::string_view>& known);

// '; the nearest known name is "x"', or else '; known: a, b, c'.
[[nodiscard]] std::string name_hint(std::string_view name,
                                    const std::vector<std::string_view>& known);

}  // namespace norma::config
