#include <fmt/format.h>

#include <algorithm>

#include "apps/cli/verb.h"
#include "apps/training/run_config.h"

namespace norma::cli {
namespace {

void print_family(const config::FamilyType& family) {
  fmt::print("{}: {}\n", family.name(), family.doc());
  std::size_t width = 0;
  for (const auto& member : family.members()) width = std::max(width, member.type.size());
  for (const auto& member : family.members()) {
    fmt::print("  {:<{}}  {} [{}]\n", member.type, width, member.doc, member.source);
  }
}

}  // namespace

Action list_verb(Options& options) {
  const auto wanted = std::make_shared<std::vector<std::string>>();
  options.add("FAMILY", *wanted, "Only these: layer, norm, optimizer, schedule ...");
  return [wanted] {
    const auto families = config::families(config::type_of<RunConfig>());
    std::vector<std::string_view> names;
    for (const auto* family : families) names.push_back(family->name());
    for (const std::string& name : *wanted) {
      if (std::find(names.begin(), names.end(), name) == names.end()) {
        throw UsageError(
            fmt::format("unknown family \"{}\"{}", name, config::name_hint(name, names)));
      }
    }
    bool first = true;
    for (const auto* family : families) {
      if (!wanted->empty() &&
          std::find(wanted->begin(), wanted->end(), family->name()) == wanted->end()) {
        continue;
      }
      if (!first) fmt::print("\n");
      first = false;
      print_family(*family);
    }
    return kDone;
  };
}

}  // namespace norma::cli
