// The configuration of a run, with what differs from the defaults.
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/report/page.h"
#include "apps/report/tables.h"
#include "apps/study/plan.h"
#include "apps/training/run_config.h"

namespace norma::report {
namespace {

using study::Json;

struct Leaf {
  std::vector<std::string> path;
  Json value;
};

void leaves_of(const Json& json, std::vector<std::string>& path, std::vector<Leaf>& leaves) {
  if (!json.is_object() || json.empty()) {
    leaves.push_back({path, json});
    return;
  }
  for (const auto& [key, value] : json.items()) {
    path.push_back(key);
    leaves_of(value, path, leaves);
    path.pop_back();
  }
}

// What stands at the path where the configuration does not say it: nothing where it must.
std::optional<Json> default_at(const Json& config, const std::vector<std::string>& path) {
  // The type of a section is left out with all that belongs to it.
  const bool type = path.size() > 1 && path.back() == "type";
  const auto gone = path.end() - (type ? 2 : 1);
  Json without = config;
  Json* parent = &without;
  for (auto key = path.begin(); key != gone; ++key) parent = &(*parent)[*key];
  parent->erase(*gone);
  try {
    const Json all = config::to_json(config::parse<RunConfig>(without));
    const Json* value = study::at_path(all, fmt::format("{}", fmt::join(path, ".")));
    return value ? *value : Json();
  } catch (const config::ConfigError&) {
    return std::nullopt;
  }
}

std::string shown(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace

std::string configuration_html(const Json& config) {
  std::vector<Leaf> leaves;
  std::vector<std::string> path;
  leaves_of(config, path, leaves);
  std::vector<std::vector<Cell>> rows;
  for (const Leaf& leaf : leaves) {
    const std::optional<Json> usual = default_at(config, leaf.path);
    const bool differs = !usual || *usual != leaf.value;
    const std::string name = escaped(fmt::format("{}", fmt::join(leaf.path, ".")));
    const std::string value = "<code>" + escaped(shown(leaf.value)) + "</code>";
    rows.push_back({{differs ? "<strong>\u2022 " + name + "</strong>" : name},
                    {differs ? "<strong>" + value + "</strong>" : value},
                    {!differs ? ""
                     : usual  ? "<code>" + escaped(shown(*usual)) + "</code>"
                              : "none"}});
  }
  return "<h2>Configuration</h2>\n<p class=\"soft\">\u2022 marks what differs from the "
         "defaults.</p>\n" +
         table({"setting", "value", "default"}, rows);
}

}  // namespace norma::report
