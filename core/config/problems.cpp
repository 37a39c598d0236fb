#include "core/config/problems.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

namespace norma::config {
namespace {

std::string message_of(std::string_view source, const std::vector<Problem>& problems) {
  const auto line = [](const Problem& p) {
    return p.path.empty() ? p.text : fmt::format("{}: {}", p.path, p.text);
  };
  std::string text(source);
  if (!text.empty()) text += ": ";
  if (problems.size() == 1) return text + line(problems.front());
  text += fmt::format("{} problems", problems.size());
  for (const Problem& p : problems) text += "\n  " + line(p);
  return text;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

}  // namespace

void Problems::raise(std::string_view source) const {
  if (!empty()) throw ConfigError(source, list_);
}

ConfigError::ConfigError(std::string_view source, std::vector<Problem> problems)
    : Error(message_of(source, problems)), problems_(std::move(problems)) {}

std::string join(std::string_view path, std::string_view key) {
  if (path.empty()) return std::string(key);
  if (key.empty()) return std::string(path);
  return fmt::format("{}.{}", path, key);
}

std::string join(std::string_view path, std::size_t index) {
  return join(path, std::to_string(index));
}

std::size_t edit_distance(std::string_view a_given, std::string_view b_given) {
  const std::string a = lower(a_given), b = lower(b_given);
  // Row i of the table of distances between prefixes; the two rows before it are enough.
  std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

std::string_view nearest_name(std::string_view name, const std::vector<std::string_view>& known) {
  constexpr std::size_t kLongest = 64;  // letters; beyond it, nothing near is to be expected
  if (name.empty() || name.size() > kLongest) return {};
  std::string_view best;
  std::pair<std::size_t, std::size_t> best_score;  // distance, then difference in length
  for (const std::string_view candidate : known) {
    const std::size_t distance = edit_distance(name, candidate);
    const std::size_t shorter = std::min(name.size(), candidate.size());
    const std::string a = lower(name), b = lower(candidate);
    const bool inside = shorter >= 2 && (a.find(b) != a.npos || b.find(a) != b.npos);
    const std::size_t allowed =
        std::max<std::size_t>(1, std::max(name.size(), candidate.size()) / 3);
    const bool near = distance <= allowed && distance < shorter;
    const std::pair score(distance, std::max(name.size(), candidate.size()) - shorter);
    if ((near || inside) && (best.empty() || score < best_score)) {
      best = candidate;
      best_score = score;
    }
  }
  return best;
}

std::string name_hint(std::string_view name, const std::vector<std::string_view>& known) {
  const std::string_view near = nearest_name(name, known);
  if (!near.empty()) return fmt::format("; the nearest known name is \"{}\"", near);
  if (known.empty()) return "; nothing is known here";
  return fmt::format("; known: {}", fmt::join(known, ", "));
}

}  // namespace norma::config
