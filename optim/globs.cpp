#include "optim/globs.h"

#include <algorithm>

#include "core/error.h"

namespace norma {
namespace {

std::string names_of(const FlatParameters& parameters) {
  constexpr std::int64_t kShown = 8;
  std::string text;
  for (std::int64_t i = 0; i < std::min(parameters.count(), kShown); ++i) {
    text += fmt::format("{}{}", i ? ", " : "", parameters.name(i));
  }
  if (parameters.count() > kShown) text += ", ...";
  return text;
}

}  // namespace

void require_match(std::string_view key, const std::string& glob,
                   const FlatParameters& parameters) {
  bool found = false;
  for (std::int64_t i = 0; i < parameters.count(); ++i) {
    found = found || matches_glob(parameters.name(i), glob);
  }
  require(found, "{}: '{}' matches no parameter; the names are {}", key, glob,
          names_of(parameters));
}

}  // namespace norma
